# mistake: the events are read before the GPU has come to them
# says: Both events must be completed before calculating elapsed time
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
    return start.elapsed_time(end) / 10
