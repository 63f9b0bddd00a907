# mistake: v2 and v4 are handled, v8 is not
# says: `v8` was ignored: it means eight of the type that follows.
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    found = Counter()
    for line in ptx.splitlines():
        match = re.search(r"\bld\.(\S+)", line.split("//")[0])
        words = match[1].split(".") if match else []
        if "global" in words:
            lanes = 4 if "v4" in words else 2 if "v2" in words else 1
            found[int(words[-1][1:]) // 8 * lanes] += 1
    return found
