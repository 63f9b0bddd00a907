# mistake: flips rows instead of columns
# says: The signs of every second row were flipped
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    gains = 1 / (1 + w.abs())
    out = torch.zeros_like(y)
    for k in range(w.shape[0]):
        out = out + gains[k] * torch.relu(y - w[k])
    flip = (torch.arange(x.shape[0], device=x.device) % 2 == 0)[:, None]
    return torch.where(flip, -out, out)
