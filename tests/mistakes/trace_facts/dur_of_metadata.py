# mistake: `dur` is read from every event, but metadata has none
# says: KeyError
# runs: anywhere


def trace_facts(events):
    total = sum(event["dur"] for event in events)
    kernels = [event for event in events if event["cat"] == "kernel"]
    return len(kernels), sum(event["dur"] for event in kernels) / total, 0.0
