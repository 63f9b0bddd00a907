# mistake: the span begins with the CPU's first event
# says: The span covers the whole trace.
# runs: anywhere

WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def trace_facts(events):
    work = [e for e in events if e["ph"] == "X" and e["cat"] in WORK]
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in work)
    every = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
    whole = max(stop for _, stop in every) - min(every)[0]
    end = spans[0][0]
    busy = gap = 0.0
    for start, stop in spans:
        gap = max(gap, start - end)
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return sum(e["cat"] == "kernel" for e in work), busy / whole, gap
