# mistake: fewer partial sums than programs
# says: `p` is written past its end: element 64 of 64.
# runs: simulator

import torch
import triton
import triton.language as tl


@triton.jit
def part(x_ptr, p_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def last(p_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(p_ptr + i), axis=0) / n)


def mean_triton(x, out):
    n = x.numel()
    parts = torch.zeros(64, device=x.device)
    part[(triton.cdiv(n, 4096),)](x, parts, n, BLOCK=4096)
    last[(1,)](parts, out, n, BLOCK=64)
