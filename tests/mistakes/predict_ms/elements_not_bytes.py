# mistake: elements are divided by bytes per second
# says: Elements were counted, not bytes
# runs: anywhere
import math


def predict_ms(operation, machine):
    kind = operation["kind"]
    if kind == "matmul":
        batch, m, n, k = (operation[name] for name in ("batch", "m", "n", "k"))
        moved = batch * (m * k + k * n + m * n)
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
        moved = read + written
        operations = elements
    memory_ms = 1e3 * moved / (machine["bandwidth_gbps"] * 1e9)
    compute_ms = 1e3 * operations / (machine["tflops"] * 1e12)
    return max(memory_ms, compute_ms)
