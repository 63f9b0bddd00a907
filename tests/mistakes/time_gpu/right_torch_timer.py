# right: the timer that comes with torch, which synchronises and repeats by itself
# runs: anywhere

from torch.utils.benchmark import Timer


def time_gpu(function):
    timer = Timer(stmt="function()", globals={"function": function})
    return timer.blocked_autorange(min_run_time=0.8).median * 1e3
