# mistake: the sums start as float16
# says: starts as <['4096'], fp16> and becomes <['4096'], fp32>
# runs: anywhere

from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, divisor, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    sums = tl.zeros((BLOCK_SIZE,), tl.float16)
    for start in range(pid * BLOCK_SIZE, n, tl.num_programs(0) * BLOCK_SIZE):
        i = start + tl.arange(0, BLOCK_SIZE)
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(sums_ptr + pid, tl.sum(sums, axis=0) / divisor)


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@cache
def scratch(device, size):
    return torch.empty(size, device=device)


def mean_triton(x, out):
    n = x.numel()
    programs = min(8 * sm_count(x.device), triton.cdiv(n, 4096))
    sums = scratch(x.device, programs)
    sums_kernel[(programs,)](x, sums, n, 1, BLOCK_SIZE=4096, num_warps=8)
    sums_kernel[(1,)](sums, out, programs, n, BLOCK_SIZE=triton.next_power_of_2(programs))
