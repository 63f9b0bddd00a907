# mistake: the first call is the one that is timed
# says: This time includes the first call
# runs: anywhere

import time

import torch


def time_gpu(function):
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1000
