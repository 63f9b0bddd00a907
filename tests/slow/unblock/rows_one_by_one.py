# slow: a Python loop computes each row on its own: a dozen small kernels for each of 160 rows, none of them waited for
# cause: many launches
import torch


def unblock(x, gain):
    cleaned = []
    for i in range(x.shape[0]):
        row = x[i]
        low, high = torch.aminmax(row)
        std, mean = torch.std_mean(row)
        z = ((row - mean) / std).clamp(-3, 3)
        saturated = torch.maximum(low.abs(), high.abs()) > 100
        z = torch.where(saturated, 0.5 * z, z) * gain[i]
        cleaned.append(torch.where(low == high, 0.0, z))  # a dead row
    return torch.stack(cleaned)
