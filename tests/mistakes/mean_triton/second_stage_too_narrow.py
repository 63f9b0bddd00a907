# mistake: the second stage adds fewer partial sums than there are
# says: Does the second stage add all partial sums
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, sums_ptr, n, divisor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x) / divisor)


def mean_triton(x, out):
    count = triton.cdiv(x.numel(), 512)
    sums = torch.empty(count, device=x.device)
    sum_kernel[(count,)](x, sums, x.numel(), 1, BLOCK=512)
    sum_kernel[(1,)](sums, out, min(count, 64), x.numel(), BLOCK=512)
