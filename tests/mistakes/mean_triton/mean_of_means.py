# mistake: the mean of the means of blocks of 1,024, although the last block is shorter
# says: This is the mean of the block means.
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def means_kernel(x_ptr, means_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(means_ptr + tl.program_id(0), tl.sum(x) / tl.sum((i < n).to(tl.int32)))


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0))
    tl.store(out_ptr, total / n)


def mean_triton(x, out):
    blocks = triton.cdiv(x.numel(), 1024)
    means = torch.empty(blocks, device=x.device)
    means_kernel[(blocks,)](x, means, x.numel(), BLOCK=1024)
    mean_kernel[(1,)](means, out, blocks, BLOCK=1024)
