# right: one regular expression for the whole text
# runs: anywhere

import re
from collections import Counter

LOAD = re.compile(
    r"(?:^|\s)ld(?=[\w.:]*\.global)[\w.:]*?(?:\.v(?P<lanes>\d))?(?:\.L\d::\w+)*\.[bufs](?P<bits>\d+)\s", re.MULTILINE
)


def vector_width(ptx):
    code = re.sub(r"//.*", "", ptx)
    return Counter(int(found["lanes"] or 1) * int(found["bits"]) // 8 for found in LOAD.finditer(code))
