# mistake: a batched product's bytes are those of one product
# says: Traffic of the matrix products is missing: both matrices and the result, of each product in a `batch`
# runs: anywhere
import math

import torch


def predict_ms(operation, machine):
    kind = operation["kind"]
    size = getattr(torch, operation["dtype"]).itemsize
    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved = (m * k + k * n + m * n) * size
        operations = 2 * batch * m * n * k
    else:
        elements = math.prod(operation["shape"])
        read = written = elements
        if kind == "add":
            read = 2 * elements
        if kind == "add_row":
            read = elements + operation["shape"][1]
        if kind == "sum":
            written = 1
        written_size = getattr(torch, operation.get("to", operation["dtype"])).itemsize
        moved = read * size + written * written_size
        operations = elements
    memory_ms = 1e3 * moved / (machine["bandwidth_gbps"] * 1e9)
    compute_ms = 1e3 * operations / (machine["tflops"] * 1e12)
    return max(memory_ms, compute_ms)
