# mistake: the operations of a batch are those of one product
# says: The operations of one matrix product were counted
# runs: anywhere
import math

import torch


def predict_ms(operation, machine):
    size = getattr(torch, operation["dtype"]).itemsize  # bytes of an element
    kind = operation["kind"]
    if kind == "matmul":
        b, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved = b * (m * k + k * n + m * n) * size
        flops = 2 * m * n * k
    else:
        count = math.prod(operation["shape"])
        flops = count
        if kind in ("copy", "relu"):
            moved = 2 * count * size
        elif kind == "add":
            moved = 3 * count * size
        elif kind == "sum":
            moved = count * size + size
        elif kind == "convert":
            moved = count * (size + getattr(torch, operation["to"]).itemsize)
        elif kind == "add_row":
            moved = 2 * count * size + operation["shape"][1] * size
    return max(moved / (machine["bandwidth_gbps"] * 1e9), flops / (machine["tflops"] * 1e12)) * 1e3
