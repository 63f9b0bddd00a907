# mistake: the first call is the one that is timed
# says: The first call is in this time, and it is slow
# runs: anywhere

import time

import torch


def time_gpu(function):
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1000
