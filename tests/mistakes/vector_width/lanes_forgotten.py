# mistake: v2 and v4 are not looked at
# says: The type alone was counted
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
