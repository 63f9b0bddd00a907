# mistake: each line counts its first load, even in a comment
# says: Loads in comments were counted
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    found = Counter()
    for line in ptx.splitlines():
        match = re.search(r"\bld\.(\S*global\S*)", line)
        if match:
            words = match[1].split(".")
            lanes = [int(word[1:]) for word in words if re.fullmatch(r"v\d", word)]
            found[int(words[-1][1:]) // 8 * (lanes[0] if lanes else 1)] += 1
    return found
