# mistake: saturation is tested only at the positive end
# says: Rows that are saturated at the negative end were not halved
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    z = torch.where(high > 100, z * 0.5, z) * gain[:, None]
    return torch.where(low == high, 0.0, z)
