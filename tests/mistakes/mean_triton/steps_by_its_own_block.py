# mistake: the loop steps by one block, so programs add the same elements
# says: Some elements were counted more than once
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, sums_ptr, n, divisor, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, BLOCK):
        sums += tl.load(x_ptr + start + lane, mask=start + lane < n, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(sums) / divisor)


def mean_triton(x, out):
    sums = torch.empty(32, device=x.device)
    sum_kernel[(32,)](x, sums, x.numel(), 1, BLOCK=1024)
    sum_kernel[(1,)](sums, out, 32, x.numel(), BLOCK=1024)
