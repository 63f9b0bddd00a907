# slow: two assertions on tensors wait for the GPU in each call
# cause: waits for the GPU
# blind: missed
import torch


def unblock(x, gain):
    assert not torch.isnan(x).any(), "a sensor sent NaN"
    lo = x.amin(dim=1, keepdim=True)
    hi = x.amax(dim=1, keepdim=True)
    std, mean = torch.std_mean(x, dim=1, keepdim=True)
    alive = lo != hi
    scale = torch.where(torch.maximum(-lo, hi) > 100, 0.5, 1.0) * gain.unsqueeze(1)
    z = ((x - mean) / torch.where(alive, std, torch.inf)).clamp(-3, 3) * scale
    assert torch.isfinite(z).all(), "division by zero"
    return z
