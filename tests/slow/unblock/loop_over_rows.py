# slow: a loop over the rows in Python
# cause: many launches
# blind: missed
import torch


def unblock(x, gain):
    out = torch.empty_like(x)
    for row in range(x.shape[0]):
        values = x[row]
        low, high = torch.aminmax(values)
        std, mean = torch.std_mean(values)
        std = torch.where(low == high, float("inf"), std)
        factor = torch.where(torch.maximum(low.abs(), high.abs()) > 100, 0.5, 1.0) * gain[row]
        out[row] = ((values - mean) / std).clamp(-3, 3) * factor
    return out
