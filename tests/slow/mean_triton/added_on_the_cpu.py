# slow: the CPU waits for the sums of the programs, adds them in Python, and sends the mean back
# cause: waits for the GPU
import math
from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, divisor, BLOCK_SIZE: tl.constexpr):
    i = tl.arange(0, BLOCK_SIZE)
    sums = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK_SIZE, n, tl.num_programs(0) * BLOCK_SIZE):
        sums += tl.load(x_ptr + start + i, mask=start + i < n, other=0.0)  # reads n in all
    tl.store(sums_ptr + tl.program_id(0), tl.sum(sums, axis=0) / divisor)  # writes one number per program


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@cache
def scratch(device, size):
    return torch.empty(size, device=device)


def mean_triton(x, out):
    n, block_size = x.numel(), 4096
    programs = min(8 * sm_count(x.device), triton.cdiv(n, block_size))
    sums = scratch(x.device, programs)
    sums_kernel[(programs,)](x, sums, n, 1, BLOCK_SIZE=block_size, num_warps=8)
    out.fill_(math.fsum(sums.tolist()) / n)  # in float64
