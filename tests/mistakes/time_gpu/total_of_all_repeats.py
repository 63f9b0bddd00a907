# mistake: the time of all ten calls is returned
# says: This is the total time of several calls: divide by their number.
# runs: anywhere

import torch


def time_gpu(function):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    function()
    torch.cuda.synchronize()
    start.record()
    for _ in range(10):
        function()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)
