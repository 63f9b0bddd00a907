# mistake: nothing is fetched, but the CPU waits twice for everything that it has launched
# says: In one call the CPU still waits for the GPU 2 times
# runs: simulator
import torch


def unblock(x, gain):
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    low, high = torch.aminmax(x, dim=1, keepdim=True)
    torch.cuda.synchronize()
    factor = torch.where(torch.maximum(low.abs(), high.abs()) > 100, 0.5, 1.0) * gain[:, None]
    z = torch.where(low == high, 0.0, (x - mean) / std)
    torch.cuda.current_stream().synchronize()
    return z.clamp(-3, 3) * factor
