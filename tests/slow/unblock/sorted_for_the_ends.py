# slow: every row is sorted to find its smallest and its largest value
# cause: extra operations
# blind: missed
import torch


def unblock(x, gain):
    ordered, _ = x.sort(dim=-1)
    first, last = ordered[:, :1], ordered[:, -1:]
    spread, centre = torch.std_mean(x, dim=-1, keepdim=True)
    spread = spread.masked_fill(first == last, float("inf"))
    weight = gain[:, None] * torch.where((first < -100) | (last > 100), 0.5, 1.0)
    return x.sub(centre).div_(spread).clamp_(-3, 3).mul_(weight)
