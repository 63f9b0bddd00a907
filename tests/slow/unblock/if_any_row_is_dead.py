# slow: an `if` on a tensor
# cause: waits for the GPU
# blind: missed
import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    dead = low == high
    if dead.any():
        std = std.masked_fill(dead, float("inf"))
    saturated = torch.maximum(low.abs(), high.abs()) > 100
    factor = torch.where(saturated, 0.5, 1.0) * gain[:, None]
    return (x - mean).div_(std).clamp_(-3, 3).mul_(factor)
