# slow: the result is stored, and a second kernel reads it again to flip the signs of every second column
# cause: extra traffic
import torch


def fuse(x, w):
    y = x / x.abs().amax(1, keepdim=True).clamp_min(1e-6)
    knots = [w[k] for k in range(w.shape[0])]
    total = knots[0]
    for knot in knots[1:]:
        total = total + knot
    y = torch.where(total > 0, y.tanh(), y.clamp(-0.5, 0.5))
    out = torch.zeros_like(y)
    for knot in knots:
        out += torch.relu(y - knot) / (1 + knot.abs())
    out[:, ::2] *= -1
    return out
