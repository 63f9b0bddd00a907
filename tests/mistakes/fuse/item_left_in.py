# mistake: the weights are copied to the CPU one by one
# says: `.item()`
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    total = torch.zeros_like(x)
    for k in range(w.shape[0]):
        knot = w[k].item()
        total = total + torch.relu(y - knot) / (1 + abs(knot))
    columns = torch.arange(x.shape[1], device=x.device)
    return torch.where(columns % 2 == 0, -total, total)
