# mistake: saturation is tested after scaling
# says: Saturated rows were not halved.
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    saturated = z.abs().amax(dim=1, keepdim=True) > 100
    factor = torch.where(saturated, 0.5, 1.0) * gain[:, None]
    return torch.where(low == high, 0.0, z * factor)
