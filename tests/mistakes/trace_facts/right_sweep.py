# right: a sweep over starts and ends that counts what runs
# runs: anywhere


def trace_facts(events):
    kernels, marks = 0, []
    for event in events:
        if event["ph"] != "X" or event["cat"] not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        kernels += event["cat"] == "kernel"
        marks += [(event["ts"], 0, 1), (event["ts"] + event["dur"], 1, -1)]
    marks.sort()
    running, idle, longest, since = 0, 0.0, 0.0, marks[0][0]
    for time, _, change in marks:
        if running == 0:
            idle += time - since
            longest = max(longest, time - since)
        running += change
        since = time
    return kernels, 1 - idle / (marks[-1][0] - marks[0][0]), longest
