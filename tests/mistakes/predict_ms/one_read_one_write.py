# mistake: each operation on elements is taken for one read and one write; of several bugs one is named
# says: `add` reads two tensors
# runs: anywhere
import math

import torch


def predict_ms(operation, machine):
    kind = operation["kind"]
    size = getattr(torch, operation["dtype"]).itemsize
    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved = batch * (m * k + k * n + m * n) * size
        operations = 2 * batch * m * n * k
    else:
        elements = math.prod(operation["shape"])
        read = written = elements
        written_size = getattr(torch, operation.get("to", operation["dtype"])).itemsize
        moved = read * size + written * written_size
        operations = elements
    memory_ms = 1e3 * moved / (machine["bandwidth_gbps"] * 1e9)
    compute_ms = 1e3 * operations / (machine["tflops"] * 1e12)
    return max(memory_ms, compute_ms)
