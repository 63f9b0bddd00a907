# mistake: a pattern that allows only v2 and v4
# says: Loads with `v8` are missing
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    code = re.sub(r"//.*", "", ptx)
    found = re.findall(r"\bld(?:\.[\w:]+)*?\.global(?:\.(?!v)[\w:]+)*?(?:\.v([24]))?\.[bufs](\d+)\s", code)
    return Counter(int(lanes or 1) * int(bits) // 8 for lanes, bits in found)
