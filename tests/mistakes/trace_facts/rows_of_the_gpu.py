# mistake: everything on the GPU's rows is counted as work
# says: Ranges or synchronisations were counted as work
# runs: anywhere


def trace_facts(events):
    work = [e for e in events if e["ph"] == "X" and e["pid"] == 0]
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in work)
    begin = end = spans[0][0]
    busy = gap = 0.0
    for start, stop in spans:
        gap = max(gap, start - end)
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return sum(e["cat"] == "kernel" for e in work), busy / (end - begin), gap
