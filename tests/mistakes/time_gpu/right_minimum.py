# right: the smallest of twenty times is returned
# runs: simulator

import torch


def time_gpu(function):
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    times = []
    for _ in range(20):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)
