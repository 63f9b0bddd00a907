# right: one step at a time, without helpers that return two results
# runs: anywhere

import torch


def unblock(x, gain):
    low = x.amin(dim=1, keepdim=True)
    high = x.amax(dim=1, keepdim=True)
    dead = low == high
    z = x - x.mean(dim=1, keepdim=True)
    z = z / torch.where(dead, 1.0, x.std(dim=1, keepdim=True))
    z = z.clamp(-3, 3)
    z = torch.where((low.abs() > 100) | (high.abs() > 100), z * 0.5, z)
    return (z * gain.unsqueeze(1)).masked_fill(dead, 0.0)
