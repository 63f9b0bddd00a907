# mistake: every event with "kernel" in its name is counted
# says: The count uses names.
# runs: anywhere

WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def trace_facts(events):
    work = [e for e in events if e["ph"] == "X" and e["cat"] in WORK]
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in work)
    begin = end = spans[0][0]
    busy = gap = 0.0
    for start, stop in spans:
        gap = max(gap, start - end)
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return sum("kernel" in e["name"].lower() for e in events if e["ph"] == "X"), busy / (end - begin), gap
