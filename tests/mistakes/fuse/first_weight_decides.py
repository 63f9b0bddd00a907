# mistake: tests the first weight instead of the mean
# says: something other than the mean decides
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w[0] > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    gains = 1 / (1 + w.abs())
    out = torch.zeros_like(y)
    for k in range(w.shape[0]):
        out = out + gains[k] * torch.relu(y - w[k])
    flip = torch.arange(x.shape[1], device=x.device) % 2 == 0
    return torch.where(flip, -out, out)
