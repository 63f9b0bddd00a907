# mistake: the loop is a third dimension, reduced along a different one
# says: more kernels than allowed
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, y.tanh(), y.clamp(-0.5, 0.5))
    terms = torch.relu(y[:, :, None] - w) / (1 + w.abs())
    odd = torch.arange(x.shape[1], device=x.device) % 2 == 1
    return terms.sum(dim=2) * torch.where(odd, 1.0, -1.0)
