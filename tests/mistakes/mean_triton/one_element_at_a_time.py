# mistake: a loop loads single elements and adds each to one float32
# says: the kernel takes one element at a time: many values added to one float32
# runs: simulator

from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, divisor, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    total = 0.0
    for i in range(pid * BLOCK_SIZE, tl.minimum((pid + 1) * BLOCK_SIZE, n)):
        total += tl.load(x_ptr + i)
    tl.store(sums_ptr + pid, total / divisor)


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@cache
def scratch(device, size):
    return torch.empty(size, device=device)


def mean_triton(x, out):
    n = x.numel()
    programs = triton.cdiv(n, 4096)
    sums = scratch(x.device, programs)
    sums_kernel[(programs,)](x, sums, n, 1, BLOCK_SIZE=4096, num_warps=8)
    sums_kernel[(1,)](sums, out, programs, n, BLOCK_SIZE=triton.next_power_of_2(programs))
