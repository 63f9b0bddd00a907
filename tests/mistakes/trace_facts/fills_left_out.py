# mistake: leaves out the fills
# says: Fills are missing in the busy share
# runs: anywhere

WORK = ("kernel", "gpu_memcpy")


def trace_facts(events):
    work = [e for e in events if e["ph"] == "X" and e["cat"] in WORK]
    kernels = sum(e["cat"] == "kernel" for e in work)
    pieces = sorted((e["ts"], e["ts"] + e["dur"]) for e in work)
    busy, gap = 0.0, 0.0
    end = pieces[0][0]
    for start, stop in pieces:
        gap = max(gap, start - end)
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return kernels, busy / (end - pieces[0][0]), gap
