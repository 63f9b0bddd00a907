# right: torch.Event and torch.accelerator, which work on any device
# runs: anywhere

import torch


def time_gpu(function):
    for _ in range(3):
        function()
    torch.accelerator.synchronize()
    times = []
    for _ in range(21):
        start = torch.Event("cuda", enable_timing=True)
        end = torch.Event("cuda", enable_timing=True)
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return torch.tensor(times).median().item()
