# mistake: the pipeline as it was
# says: the CPU waits for the GPU
# on_gpu: the blocking pipeline
# runs: anywhere

import torch


def unblock(x, gain):
    gain = gain.cpu()
    cleaned = []
    for i in range(x.shape[0]):
        row = x[i]
        low, high = row.min().item(), row.max().item()
        if low == high:  # a dead sensor
            cleaned.append(torch.zeros_like(row))
            continue
        z = row - row.mean()
        z = z / row.std().cpu().to(x.device)
        if torch.any(z.abs() > 3):  # outliers
            z = z.clamp(-3, 3)
        if max(abs(low), abs(high)) > 100:  # saturated: halve it
            z = z * 0.5
        cleaned.append(z * gain[i].to(x.device))
    return torch.stack(cleaned)
