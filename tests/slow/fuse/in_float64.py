# slow: the whole curve is computed in float64
# cause: double precision
import torch


def fuse(x, w):
    wide, knots = x.double(), w.double()
    peak = wide.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = wide / peak
    y = torch.where(knots.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    total = torch.zeros_like(y)
    for knot in knots.unbind():
        total = total + torch.relu(y - knot) / (1 + knot.abs())
    even = torch.arange(x.shape[1], device=x.device) % 2 == 0
    return torch.where(even, -total, total).float()
