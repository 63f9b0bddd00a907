# mistake: the ceilings of the learner's own machine are hard-coded in the function
# says: The answer does not depend on `machine`: a machine that is twice as fast needs half the time.
# runs: anywhere
import math

import torch

BANDWIDTH_GBPS, TFLOPS = 1555, 280


def predict_ms(operation, machine):
    size = getattr(torch, operation["dtype"]).itemsize
    if operation["kind"] == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved, operations = batch * (m * k + k * n + m * n) * size, 2 * batch * m * n * k
    else:
        elements = operations = math.prod(operation["shape"])
        read = elements + {"add": elements, "add_row": operation["shape"][1]}.get(operation["kind"], 0)
        written = 1 if operation["kind"] == "sum" else elements
        moved = read * size + written * getattr(torch, operation.get("to", operation["dtype"])).itemsize
    return max(moved / BANDWIDTH_GBPS / 1e6, operations / TFLOPS / 1e9)
