# mistake: a GB is taken as 2**30 bytes
# says: 1 GB/s is 1e9 bytes per second; 2**30 bytes are one GiB, 7 % more.
# runs: anywhere
from math import prod

BYTES = {"uint8": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


def predict_ms(operation, machine):
    kind, size = operation["kind"], BYTES[operation["dtype"]]
    if kind == "matmul":
        m, n, k = operation["m"], operation["n"], operation["k"]
        moved = operation["batch"] * size * (m * k + k * n + m * n)
        work = operation["batch"] * 2 * m * n * k
    else:
        n = prod(operation["shape"])
        read, written = {
            "copy": (n, n),
            "relu": (n, n),
            "add": (2 * n, n),
            "sum": (n, 1),
            "convert": (n, n),
            "add_row": (n + operation["shape"][1], n),
        }[kind]
        moved = read * size + written * BYTES[operation.get("to", operation["dtype"])]
        work = n
    return 1e3 * max(moved / (machine["bandwidth_gbps"] * 2**30), work / (machine["tflops"] * 1e12))
