# slow: all arithmetic is float64, with a float64 tanh and eight float64 divisions per element
# cause: double precision
import torch


def fuse(x, w):
    w = w.double()  # the original's gains are NumPy's float64
    y = x.double()
    y = y / y.abs().amax(dim=1, keepdim=True).clamp(min=1e-6)
    y = torch.where(w.mean() > 0, torch.tanh(y), y.clamp(-0.5, 0.5))
    out = torch.zeros_like(y)
    for k in range(w.shape[0]):
        out = out + torch.relu(y - w[k]) / (1 + w[k].abs())
    odd = torch.arange(x.shape[1], device=x.device) % 2 == 1
    return torch.where(odd, out, -out).float()
