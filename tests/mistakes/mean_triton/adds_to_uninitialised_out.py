# mistake: programs add to out, which nobody has set to 0
# says: NaN + x is NaN: set it to 0
# runs: anywhere

from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def sums_kernel(x_ptr, sums_ptr, n, divisor, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    sums = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(pid * BLOCK_SIZE, n, tl.num_programs(0) * BLOCK_SIZE):
        i = start + tl.arange(0, BLOCK_SIZE)
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(sums_ptr, tl.sum(sums, axis=0) / divisor)


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@cache
def scratch(device, size):
    return torch.empty(size, device=device)


def mean_triton(x, out):
    n = x.numel()
    programs = min(8 * sm_count(x.device), triton.cdiv(n, 4096))
    sums_kernel[(programs,)](x, out, n, n, BLOCK_SIZE=4096, num_warps=8)
