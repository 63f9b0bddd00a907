# mistake: the function is named, but not called, between the events
# says: A call has parentheses: `function()`.
# runs: simulator

from statistics import median

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
        function  # noqa: B018
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return median(times)
