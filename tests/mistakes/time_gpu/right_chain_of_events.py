# right: an event between consecutive calls, with garbage collection off
# runs: anywhere

import gc
import itertools

import numpy as np
import torch


def time_gpu(function):
    function()
    function()
    torch.cuda.current_stream().synchronize()
    was = gc.isenabled()
    gc.disable()
    try:
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(26)]
        marks[0].record()
        for mark in marks[1:]:
            function()
            mark.record()
        marks[-1].synchronize()
    finally:
        if was:
            gc.enable()
    return np.quantile([a.elapsed_time(b) for a, b in itertools.pairwise(marks)], 0.5)
