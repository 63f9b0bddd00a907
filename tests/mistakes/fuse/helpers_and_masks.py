# right: helper functions, a mask in place of torch.where, Python's sum
# runs: anywhere

import torch


def bend(y, w):
    positive = w.mean() > 0
    return torch.tanh(y) * positive + torch.clip(y, -0.5, 0.5) * ~positive


def fuse(x, w):
    peak = torch.linalg.vector_norm(x, ord=float("inf"), dim=1)
    y = bend(x / torch.clamp(peak, min=1e-6)[:, None], w)
    gains = 1 / (1 + w.abs())
    total = sum(gain * torch.relu(y - knot) for gain, knot in zip(gains, w, strict=True))
    sign = 2 * (torch.arange(x.shape[1], device=x.device) % 2) - 1
    return total * sign
