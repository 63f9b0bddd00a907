# mistake: the time is printed, and nothing is returned
# says: time_gpu returned None, but must return the milliseconds as a number
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
    print(start.elapsed_time(end) / 10, "ms")
