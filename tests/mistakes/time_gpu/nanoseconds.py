# mistake: the clock counts nanoseconds, and they are returned
# says: This is the time in nanoseconds
# runs: anywhere

import time
from statistics import median

import torch


def time_gpu(function):
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    times = []
    for _ in range(20):
        start = time.perf_counter_ns()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter_ns() - start)
    return median(times)
