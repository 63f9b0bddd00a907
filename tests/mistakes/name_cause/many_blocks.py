# mistake: finds a cost in more blocks than SMs
# says: More blocks than SMs were counted as a cost
# runs: anywhere


def name_cause(evidence):
    bytes_per_us = 1000 * evidence["copy_gbps"]
    moving = evidence["moved_bytes"] / bytes_per_us
    scattered = moving * evidence["sectors_per_access"] / evidence["sectors_needed"]
    costs = {
        "launches": (evidence["launches"] - 1) * evidence["launch_us"],
        "repeated traffic": (evidence["moved_bytes"] - evidence["must_move_bytes"]) / bytes_per_us,
        "scattered access": scattered - moving,
        "few blocks": scattered * abs(evidence["sms"] / evidence["blocks"] - 1),
    }
    name = max(costs, key=costs.get)
    return name if costs[name] > 0.1 * evidence["time_us"] else "none"
