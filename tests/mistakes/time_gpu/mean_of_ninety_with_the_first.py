# mistake: the mean of ninety calls, the slow first one among them
# says: Is it the first call
# runs: simulator

import time

import torch


def time_gpu(function):
    start = time.perf_counter()
    for _ in range(90):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 90 * 1000
