# mistake: the time is read from the end to the start
# says: the two clock readings are exchanged
# runs: anywhere

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
        function()
        end.record()
        end.synchronize()
        times.append(end.elapsed_time(start))
    return median(times)
