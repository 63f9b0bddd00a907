# mistake: the clock starts while the warm-up calls are still in the GPU's queue
# says: warm-up calls that were still running
# runs: anywhere

import time

import torch


def time_gpu(function):
    for _ in range(5):
        function()
    start = time.perf_counter()
    for _ in range(20):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 20 * 1000
