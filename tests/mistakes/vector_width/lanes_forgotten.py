# mistake: v2 and v4 are ignored
# says: Only the type was counted: a `v4` before it means four of them.
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    widths = Counter()
    for line in ptx.splitlines():
        found = re.search(r"\bld(\.[\w.:]+)", line.partition("//")[0])
        parts = found[1].split(".") if found else []
        if "global" in parts:
            widths[int(parts[-1][1:]) // 8] += 1
    return dict(widths)
