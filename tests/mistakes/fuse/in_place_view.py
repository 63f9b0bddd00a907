# mistake: the signs are flipped in place, through a view
# says: fused into more kernels than allowed: 3, at most 2
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    total = torch.zeros_like(x)
    for k in range(w.shape[0]):
        total = total + torch.relu(y - w[k]) / (1 + w[k].abs())
    total[:, ::2] *= -1
    return total
