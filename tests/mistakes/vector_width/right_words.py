# right: by words, without regular expressions
# runs: anywhere

BITS = {f"{kind}{bits}": bits for kind in "busf" for bits in (8, 16, 32, 64)}


def vector_width(ptx):
    counts = {}
    for line in ptx.splitlines():
        code, _, _ = line.partition("//")
        for word in code.split():
            name, *parts = word.split(".")
            if name != "ld" or "global" not in parts or parts[-1] not in BITS:
                continue
            lanes = {"v2": 2, "v4": 4, "v8": 8}
            count = max((lanes.get(part, 1) for part in parts), default=1)
            width = count * BITS[parts[-1]] // 8
            counts[width] = counts.get(width, 0) + 1
    return counts
