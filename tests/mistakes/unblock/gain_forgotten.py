# mistake: the gain is left out
# says: The gain is missing.
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    saturated = torch.maximum(low.abs(), high.abs()) > 100
    factor = torch.where(saturated, 0.5, 1.0)
    return torch.where(low == high, 0.0, z * factor)
