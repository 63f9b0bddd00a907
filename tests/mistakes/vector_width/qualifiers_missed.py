# mistake: nothing may come between ld.global and the type
# says: Loads with qualifiers are missing
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    widths = Counter()
    for line in ptx.splitlines():
        found = re.search(r"\bld\.global((?:\.v\d)?\.[bufs]\d+)\b", line.partition("//")[0])
        parts = found[1].split(".") if found else []
        if parts:
            lanes = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
            widths[lanes * int(parts[-1][1:]) // 8] += 1
    return dict(widths)
