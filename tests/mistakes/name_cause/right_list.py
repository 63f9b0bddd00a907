# right: a list of costs, with the threshold as one of them
# runs: anywhere


def name_cause(evidence):
    moving = evidence["moved_bytes"] / evidence["copy_gbps"] / 1e3
    waste = evidence["sectors_per_access"] / evidence["sectors_needed"]
    idle = max(1.0, evidence["sms"] / evidence["blocks"])
    costs = [
        ((evidence["launches"] - 1) * evidence["launch_us"], "launches"),
        (moving * (1 - evidence["must_move_bytes"] / evidence["moved_bytes"]), "repeated traffic"),
        (moving * (waste - 1), "scattered access"),
        (moving * waste * (idle - 1), "few blocks"),
        (0.1 * evidence["time_us"], "none"),
    ]
    return max(costs)[1]
