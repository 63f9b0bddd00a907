# right: stretches are merged into a list first
# runs: anywhere

from itertools import pairwise


def trace_facts(events):
    busy_kinds = {"kernel", "gpu_memcpy", "gpu_memset"}
    work = sorted(
        (event for event in events if event["ph"] == "X" and event["cat"] in busy_kinds), key=lambda event: event["ts"]
    )
    stretches = []
    for event in work:
        start, stop = event["ts"], event["ts"] + event["dur"]
        if stretches and start <= stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], stop)
        else:
            stretches.append([start, stop])
    busy = sum(stop - start for start, stop in stretches)
    span = stretches[-1][1] - stretches[0][0]
    gaps = [after[0] - before[1] for before, after in pairwise(stretches)]
    return sum(event["cat"] == "kernel" for event in work), busy / span, max(gaps, default=0)
