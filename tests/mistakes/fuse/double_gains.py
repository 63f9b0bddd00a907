# mistake: NumPy's float64 survives: the gains are an array of float64
# says: the result is torch.float64
# runs: anywhere

import torch


def fuse(x, w):
    y = x / x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    gains = 1 / (1 + w.double().abs())
    total = (torch.relu(y[:, :, None] - w) * gains).sum(dim=2)
    columns = torch.arange(x.shape[1], device=x.device)
    return torch.where(columns % 2 == 0, -total, total)
