# mistake: looks for `global` in the whole line
# says: its address is called `global_smem`
# runs: anywhere

import re
from collections import Counter


def vector_width(ptx):
    counts = Counter()
    for line in ptx.splitlines():
        code = line.split("//")[0]
        for name in re.findall(r"\bld\.[\w.:]+", code):
            parts = name.split(".")
            if "global" not in code:
                continue
            many = next((int(p[1:]) for p in parts if re.fullmatch(r"v[248]", p)), 1)
            bits = int(re.search(r"\d+$", parts[-1]).group())
            counts[many * bits // 8] += 1
    return dict(counts)
