# mistake: the magnitude in place of the ReLU
# says: Here it is `abs(y - knot)`.
# runs: anywhere
import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    out = torch.zeros_like(y)
    for i in range(w.shape[0]):
        out = out + (y - w[i]).abs() / (1 + w[i].abs())
    sign = 1 - 2 * (torch.arange(x.shape[1], device=x.device) % 2 == 0).to(y.dtype)
    return out * sign
