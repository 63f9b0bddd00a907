# mistake: a single call is timed
# says: One single shot is not a measurement
# runs: anywhere

import torch


def time_gpu(function):
    function()
    torch.cuda.synchronize()
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    function()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)
