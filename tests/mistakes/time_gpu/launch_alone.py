# mistake: one launch is timed, and nothing ever waits for the GPU
# says: A launch returns immediately
# runs: anywhere

import time


def time_gpu(function):
    function()
    start = time.time()
    function()
    return (time.time() - start) * 1000
