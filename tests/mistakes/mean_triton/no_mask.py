# mistake: the loads have no mask
# says: The result is NaN only if the last block is not full: it reads past the end of `x`.
# runs: anywhere
from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i)))


@triton.jit
def finish_kernel(sums_ptr, out_ptr, count, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(sums_ptr + i, mask=i < count, other=0.0)
    tl.store(out_ptr, tl.sum(total) / n)


@cache
def buffer(device, size):
    return torch.empty(size, device=device)


def mean_triton(x, out):
    n = x.numel()
    count = triton.cdiv(n, 1024)
    sums = buffer(x.device, count)
    sum_kernel[(count,)](x, sums, n, BLOCK=1024)
    finish_kernel[(1,)](sums, out, count, n, BLOCK=1024)
