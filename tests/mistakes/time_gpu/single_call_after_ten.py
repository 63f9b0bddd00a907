# mistake: one call is timed after a warm-up of ten
# says: This is the time of an outlier
# runs: simulator

import torch


def time_gpu(function):
    for _ in range(10):
        function()
    torch.cuda.synchronize()
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    function()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)
