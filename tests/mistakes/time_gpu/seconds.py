# mistake: the wall clock counts seconds, and seconds are returned
# says: This is the time in seconds
# runs: anywhere

import time

import torch


def time_gpu(function):
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 20
