# slow: each row's statistics are stored once per element, as full matrices, and inputs are cloned
# cause: extra traffic
# blind: missed
import torch


def widen(column, like):
    return column.expand_as(like).contiguous()


def unblock(x, gain):
    data = x.clone()
    smallest = widen(data.min(dim=1, keepdim=True).values, x)
    largest = widen(data.max(dim=1, keepdim=True).values, x)
    mu = widen(data.mean(dim=1, keepdim=True), x)
    sigma = widen(data.std(dim=1, keepdim=True), x)
    gains = gain.reshape(-1, 1).repeat(1, x.shape[1])
    dead = smallest == largest
    saturated = (smallest.abs() > 100) | (largest.abs() > 100)
    z = torch.clamp((data - mu) / sigma, min=-3, max=3)
    halved = torch.where(saturated, z * 0.5, z)
    return torch.where(dead, torch.zeros_like(z), halved * gains)
