# mistake: the mean of ten calls, the slow first one among them
# says: This time includes the first call
# runs: anywhere

import torch


def time_gpu(function):
    times = []
    for _ in range(10):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sum(times) / len(times)
