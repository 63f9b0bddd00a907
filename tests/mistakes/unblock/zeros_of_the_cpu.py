# mistake: the zeros for dead rows are on the CPU
# says: One tensor is on the GPU and another is on the CPU.
# runs: anywhere
import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    z = torch.where(torch.maximum(low.abs(), high.abs()) > 100, 0.5 * z, z) * gain[:, None]
    return torch.where(low == high, torch.zeros(x.shape[0], 1), z)
