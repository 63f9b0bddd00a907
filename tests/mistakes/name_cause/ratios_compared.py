# mistake: compares ratios instead of times
# says: The ratios were compared, not the times
# runs: anywhere


def name_cause(evidence):
    ratios = {
        "launches": evidence["launches"],
        "repeated traffic": evidence["moved_bytes"] / evidence["must_move_bytes"],
        "scattered access": evidence["sectors_per_access"] / evidence["sectors_needed"],
        "few blocks": evidence["sms"] / evidence["blocks"],
    }
    cause = max(ratios, key=ratios.get)
    return cause if ratios[cause] > 1.1 else "none"
