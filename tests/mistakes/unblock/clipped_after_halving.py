# mistake: clips after saturated rows are halved
# says: Saturated rows were halved before clipping
# runs: anywhere

import torch


def unblock(x, gain):
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    z = (x - mean) / std
    saturated = torch.maximum(low.abs(), high.abs()) > 100
    z = torch.where(saturated, z * 0.5, z)
    z = z.clamp(-3, 3)
    z = torch.where(low == high, torch.zeros_like(z), z)
    return z * gain[:, None]
