# mistake: the log still keeps the mean, as a tensor
# says: more kernels than allowed
# runs: anywhere

import torch

log = {}


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    total = torch.zeros_like(x)
    for k in range(w.shape[0]):
        total = total + torch.relu(y - w[k]) / (1 + w[k].abs())
    log["mean"] = total.mean()
    columns = torch.arange(x.shape[1], device=x.device)
    return torch.where(columns % 2 == 0, -total, total)
