# mistake: the gap starts at the end of the work that started last
# says: The gap was measured from the end of the work that started last
# runs: anywhere

WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def trace_facts(events):
    work = [e for e in events if e["ph"] == "X" and e["cat"] in WORK]
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in work)
    begin = end = spans[0][0]
    busy = gap = 0.0
    before = begin
    for start, stop in spans:
        gap, before = max(gap, start - before), stop
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return sum(e["cat"] == "kernel" for e in work), busy / (end - begin), gap
