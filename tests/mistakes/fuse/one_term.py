# mistake: each term replaces the last one
# says: Only one term is in the result
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    out = torch.zeros_like(x)
    for k in range(w.shape[0]):  # unrolled while the graph is captured
        out = torch.relu(y - w[k]) / (1 + w[k].abs())
    odd = torch.arange(x.shape[1], device=x.device) % 2 == 1
    return torch.where(odd, out, -out)
