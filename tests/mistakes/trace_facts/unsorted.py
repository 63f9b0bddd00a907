# mistake: adjacent events in the file are treated as adjacent in time
# says: The gap was computed in file order, but events come in any order: sort by `ts`.
# runs: anywhere

from itertools import pairwise

WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def trace_facts(events):
    work = [e for e in events if e["ph"] == "X" and e["cat"] in WORK]
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in work]
    gap = max((after[0] - before[1] for before, after in pairwise(spans)), default=0.0)
    busy, end = 0.0, min(spans)[0]
    for start, stop in sorted(spans):
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return sum(e["cat"] == "kernel" for e in work), busy / (end - min(spans)[0]), gap
