# mistake: the time of all ten calls, by a wall clock
# says: This is the total time of several calls: divide by their number.
# runs: anywhere

import time

import torch


def time_gpu(function):
    function()
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    for _ in range(10):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - t0) * 1e3
