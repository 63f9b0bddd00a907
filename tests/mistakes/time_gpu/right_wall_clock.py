# right: the wall clock around many calls, synchronised before and after
# runs: anywhere

from time import perf_counter

from torch import cuda


def time_gpu(function, warmup=5, repeats=30):
    for _ in range(warmup):
        function()
    cuda.synchronize()
    begin = perf_counter()
    for _ in range(repeats):
        function()
    cuda.synchronize()
    return (perf_counter() - begin) / repeats * 1e3
