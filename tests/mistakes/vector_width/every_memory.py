# mistake: loads from shared memory and of parameters are counted
# says: Loads from other memory spaces were counted as well, such as shared memory, parameters or constants.
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    widths = Counter()
    for line in ptx.splitlines():
        found = re.search(r"\bld(\.[\w.:]+)", line.partition("//")[0])
        parts = found[1].split(".") if found else []
        if parts:
            lanes = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
            widths[lanes * int(parts[-1][1:]) // 8] += 1
    return dict(widths)
