# mistake: arithmetic is not counted
# says: The arithmetic is missing: a large matrix product takes longer to compute than to move.
# runs: anywhere
import math

import torch


def predict_ms(operation, machine):
    kind = operation["kind"]
    size = getattr(torch, operation["dtype"]).itemsize
    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved = batch * (m * k + k * n + m * n) * size
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
    memory_ms = 1e3 * moved / (machine["bandwidth_gbps"] * 1e9)
    return memory_ms
