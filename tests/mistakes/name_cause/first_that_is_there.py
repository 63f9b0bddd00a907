# mistake: names the first cause that is present
# says: The first cause that is present was named
# runs: anywhere


def name_cause(evidence):
    if evidence["launches"] > 1:
        return "launches"
    if evidence["moved_bytes"] > evidence["must_move_bytes"]:
        return "repeated traffic"
    if evidence["sectors_per_access"] > evidence["sectors_needed"]:
        return "scattered access"
    return "few blocks" if evidence["blocks"] < evidence["sms"] else "none"
