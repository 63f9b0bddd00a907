# mistake: the milliseconds of the events are taken for seconds, and multiplied by 1000
# says: This is a thousand times too long, as if in microseconds, but the exercise requires milliseconds.
# runs: anywhere

import torch


def time_gpu(function):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    for _ in range(3):
        function()
    start.record()
    for _ in range(20):
        function()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 20 * 1000
