# mistake: the signs of columns 1, 3, 5 … are flipped
# says: The signs of the wrong columns were flipped: `::2` starts at column 0.
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    total = torch.zeros_like(x)
    for k in range(w.shape[0]):
        total = total + torch.relu(y - w[k]) / (1 + w[k].abs())
    columns = torch.arange(x.shape[1], device=x.device)
    return torch.where(columns % 2 == 1, -total, total)
