# right: NumPy: a running maximum of the ends
# runs: anywhere

import numpy as np


def trace_facts(events):
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["ph"] == "X"]
    start = np.array([e["ts"] for e in work])
    stop = start + np.array([e["dur"] for e in work])
    order = np.argsort(start)
    start, stop = start[order], np.maximum.accumulate(stop[order])
    gaps = np.maximum(start[1:] - stop[:-1], 0)
    span = stop[-1] - start[0]
    kernels = sum(e["cat"] == "kernel" for e in work)
    return kernels, 1 - gaps.sum() / span, gaps.max() if len(gaps) else 0.0
