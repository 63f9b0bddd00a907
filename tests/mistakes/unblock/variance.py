# mistake: the values are divided by the variance
# says: The values were divided by the variance
# runs: anywhere

import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)  # reads MN
    std, mean = torch.var_mean(x, dim=1, keepdim=True)  # reads MN
    saturated = torch.maximum(low.abs(), high.abs()) > 100
    factor = torch.where(saturated, 0.5, 1.0) * gain[:, None]
    std = std.masked_fill(low == high, float("inf"))  # so that a dead row becomes 0, and not 0 / 0
    return (x - mean).div_(std).clamp_(-3, 3).mul_(factor)  # reads 4 MN, writes 4 MN
