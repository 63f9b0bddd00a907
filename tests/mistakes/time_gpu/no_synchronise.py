# mistake: the clock is read as soon as the launches have returned
# says: The GPU needs longer than that: the clock was read while the GPU was still working.
# runs: anywhere

import time

import torch


def time_gpu(function):
    for _ in range(5):
        function()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        function()
    return (time.perf_counter() - start) / 20 * 1000
