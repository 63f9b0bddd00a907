# mistake: one condition for the whole matrix is still asked of the GPU
# says: In one call the CPU still waits for the GPU 1 time
# runs: simulator
import torch


def unblock(x, gain):
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    saturated = torch.maximum(low.abs(), high.abs()) > 100
    if saturated.any():
        z = torch.where(saturated, 0.5 * z, z)
    return torch.where(low == high, 0.0, z * gain[:, None])
