# mistake: everything is copied to the CPU, and so is the result
# says: The function returns a tensor of the CPU.
# on_gpu: must be on cuda:0
# runs: anywhere
import torch


def unblock(x, gain):
    x, gain = x.cpu(), gain.cpu()
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    z = ((x - mean) / std).clamp(-3, 3)
    z = torch.where(torch.maximum(low.abs(), high.abs()) > 100, 0.5 * z, z) * gain[:, None]
    return torch.where(low == high, torch.zeros(x.shape[0], 1), z)
