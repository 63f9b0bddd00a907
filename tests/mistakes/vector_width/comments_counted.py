# mistake: comments are read as code
# says: Loads in comments were counted
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    found = re.findall(r"\bld[\w.:]*\.global[\w.:]*?(?:\.v(\d))?\.[bufs](\d+) ", ptx)
    return dict(Counter(int(lanes or 1) * int(bits) // 8 for lanes, bits in found))
