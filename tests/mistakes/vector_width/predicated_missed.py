# mistake: a line must begin with the instruction
# says: Loads under a predicate are missing
# runs: anywhere

from collections import Counter


def vector_width(ptx):
    widths = Counter()
    for line in ptx.splitlines():
        if not line.strip().startswith("ld."):
            continue
        parts = line.split()[0].split(".")
        if "global" in parts:
            lanes = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
            widths[lanes * int(parts[-1][1:]) // 8] += 1
    return widths
