# mistake: only the branch of the tested example is left
# says: The wrong curve was used: the two are swapped, only one is left
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.tanh(y)
    total = torch.zeros_like(x)
    for k in range(w.shape[0]):
        total = total + torch.relu(y - w[k]) / (1 + w[k].abs())
    columns = torch.arange(x.shape[1], device=x.device)
    return torch.where(columns % 2 == 0, -total, total)
