# right: the timer that comes with Triton, which empties the L2 cache before each call
# runs: anywhere

from triton.testing import do_bench


def time_gpu(function):
    return do_bench(function, return_mode="median")
