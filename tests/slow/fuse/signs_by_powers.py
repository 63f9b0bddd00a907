# slow: the signs are powers of -1, computed per element, and the curve is sinh over cosh
# cause: special functions
# blind: missed
import torch


def fuse(x, w):
    peak = x.abs().amax(dim=1, keepdim=True)
    y = x / peak.clamp(min=1e-6)
    curved = torch.sinh(y) / torch.cosh(y)
    y = torch.where(w.mean() > 0, curved, y.clamp(-0.5, 0.5))
    exponent = torch.arange(1, x.shape[1] + 1, device=x.device).float().expand_as(x)
    out = 0
    for k in range(len(w)):
        out = out + torch.relu(y - w[k]) * torch.reciprocal(1 + w[k].abs())
    return out * torch.pow(-1.0, exponent)
