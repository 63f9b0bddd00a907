# mistake: only the saturated readings are halved
# says: Only the saturated readings were halved: halve the whole row of a saturated sensor.
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    saturated = x.abs() > 100
    factor = torch.where(saturated, 0.5, 1.0) * gain[:, None]
    return torch.where(low == high, 0.0, z * factor)
