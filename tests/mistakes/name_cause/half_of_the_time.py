# mistake: a cause must cost half of the time
# says: Another share of the time was required
# runs: anywhere


def name_cause(evidence):
    bytes_per_us = 1000 * evidence["copy_gbps"]
    moving = evidence["moved_bytes"] / bytes_per_us
    scattered = moving * evidence["sectors_per_access"] / evidence["sectors_needed"]
    costs = {
        "launches": (evidence["launches"] - 1) * evidence["launch_us"],
        "repeated traffic": moving - evidence["must_move_bytes"] / bytes_per_us,
        "scattered access": scattered - moving,
        "few blocks": scattered * (max(1, evidence["sms"] / evidence["blocks"]) - 1),
    }
    cause = max(costs, key=costs.get)
    return cause if costs[cause] >= evidence["time_us"] / 2 else "none"
