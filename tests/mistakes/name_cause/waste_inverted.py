# mistake: the sectors are divided the other way round
# says: The waste of scattered access is inverted
# runs: anywhere


def name_cause(evidence):
    bytes_per_us = 1000 * evidence["copy_gbps"]
    moving = evidence["moved_bytes"] / bytes_per_us
    scattered = moving * evidence["sectors_needed"] / evidence["sectors_per_access"]
    costs = {
        "launches": (evidence["launches"] - 1) * evidence["launch_us"],
        "repeated traffic": moving - evidence["must_move_bytes"] / bytes_per_us,
        "scattered access": scattered - moving,
        "few blocks": scattered * (max(1, evidence["sms"] / evidence["blocks"]) - 1),
    }
    cause = max(costs, key=costs.get)
    return cause if costs[cause] >= evidence["time_us"] / 10 else "none"
