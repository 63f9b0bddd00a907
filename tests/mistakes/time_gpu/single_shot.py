# mistake: a single call is timed
# says: A single shot does not measure it
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
