# mistake: the biased standard deviation
# says: The standard deviation uses a divisor of n.
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    mean = x.mean(dim=1, keepdim=True)
    std = ((x - mean) ** 2).mean(dim=1, keepdim=True).sqrt()
    z = ((x - mean) / std).clamp(-3, 3)
    saturated = torch.maximum(low.abs(), high.abs()) > 100
    factor = torch.where(saturated, 0.5, 1.0) * gain[:, None]
    return torch.where(low == high, 0.0, z * factor)
