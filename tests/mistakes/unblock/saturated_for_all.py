# mistake: one saturated row halves all
# says: One saturated row made every row halved: the branch needs a condition for each row.
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    saturated = x.abs().amax() > 100
    factor = torch.where(saturated, 0.5, 1.0) * gain[:, None]
    return torch.where(low == high, 0.0, z * factor)
