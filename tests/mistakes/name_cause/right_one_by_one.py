# right: looks at one cause after the other and keeps the dearest so far
# runs: anywhere
def name_cause(evidence):
    per_us = evidence["copy_gbps"] * 1e3
    name, dearest = "none", 0.0
    cost = evidence["launch_us"] * evidence["launches"] - evidence["launch_us"]
    if cost > dearest:
        name, dearest = "launches", cost
    cost = (evidence["moved_bytes"] - evidence["must_move_bytes"]) / per_us
    if cost > dearest:
        name, dearest = "repeated traffic", cost
    factor = evidence["sectors_per_access"] / evidence["sectors_needed"]
    cost = evidence["moved_bytes"] / per_us * (factor - 1)
    if cost > dearest:
        name, dearest = "scattered access", cost
    if evidence["blocks"] < evidence["sms"]:
        cost = evidence["moved_bytes"] / per_us * factor * (evidence["sms"] / evidence["blocks"] - 1)
        if cost > dearest:
            name, dearest = "few blocks", cost
    if dearest < 0.1 * evidence["time_us"]:
        return "none"
    return name
