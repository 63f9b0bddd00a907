# mistake: the time is returned as a text with its unit
# says: it returned the text
# runs: anywhere

import math

import torch


def predict_ms(operation, machine):
    size = getattr(torch, operation["dtype"]).itemsize  # bytes of an element
    kind = operation["kind"]
    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved = batch * (m * k + k * n + m * n) * size  # two matrices in, one out
        operations = 2 * batch * m * n * k  # multiplications and additions
    else:
        elements = math.prod(operation["shape"])
        more = {"add": elements, "add_row": operation["shape"][-1]}.get(kind, 0)  # of the second input
        read = (elements + more) * size
        result_size = getattr(torch, operation.get("to", operation["dtype"])).itemsize
        written = (1 if kind == "sum" else elements) * result_size
        moved, operations = read + written, elements
    memory_s = moved / (machine["bandwidth_gbps"] * 1e9)
    compute_s = operations / (machine["tflops"] * 1e12)
    return f"{1e3 * max(memory_s, compute_s):.3f} ms"
