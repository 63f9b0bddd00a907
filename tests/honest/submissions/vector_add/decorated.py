# honest: decorators of its own: one checks arguments, one counts calls and seconds
# exercise: vector_add
# runs: anywhere
# gates: passes
import functools
import time
from collections import Counter

import torch
import triton
import triton.language as tl

calls = Counter()
seconds = 0.0


def counted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        global seconds
        begun = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            calls[function.__name__] += 1
            seconds += time.perf_counter() - begun

    return wrapper


def checked(*, dtype):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*tensors):
            for tensor in tensors:
                if tensor.dtype is not dtype:
                    raise TypeError(f"{dtype} was expected, not {tensor.dtype}")
            return function(*tensors)

        return wrapper

    return decorate


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


@counted
@checked(dtype=torch.float32)
def vector_add(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
