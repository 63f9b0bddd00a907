# mistake: takes the whole time of scattered access as its cost
# says: The whole time was taken as the cost of scattered access
# runs: anywhere


def name_cause(evidence):
    bytes_per_us = 1000 * evidence["copy_gbps"]
    moving = evidence["moved_bytes"] / bytes_per_us
    scattered = moving * evidence["sectors_per_access"] / evidence["sectors_needed"]
    costs = {
        "launches": (evidence["launches"] - 1) * evidence["launch_us"],
        "repeated traffic": (evidence["moved_bytes"] - evidence["must_move_bytes"]) / bytes_per_us,
        "scattered access": scattered,
        "few blocks": scattered * (max(1, evidence["sms"] / evidence["blocks"]) - 1),
    }
    name = max(costs, key=costs.get)
    return name if costs[name] > 0.1 * evidence["time_us"] else "none"
