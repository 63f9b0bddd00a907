# right: the gain first, and separate bounds for each row
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = x.aminmax(dim=1, keepdim=True)
    weight = torch.where(x.abs().amax(dim=1, keepdim=True) > 100, 0.5, 1.0) * gain[:, None]
    mean = x.mean(dim=1, keepdim=True)
    centred = x - mean
    std = (centred.square().sum(dim=1, keepdim=True) / (x.shape[1] - 1)).sqrt()
    scale = torch.where(low == high, torch.zeros_like(std), weight / std)
    limit = 3 * weight.abs()
    return torch.minimum(torch.maximum(centred * scale, -limit), limit)
