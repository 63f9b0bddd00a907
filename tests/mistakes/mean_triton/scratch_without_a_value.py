# mistake: the programs add to a tensor that `torch.empty` made, and which holds anything
# says: can hold any value
# runs: simulator
import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))


@triton.jit
def divide_kernel(total_ptr, out_ptr, n):
    tl.store(out_ptr, tl.load(total_ptr) / n)


def mean_triton(x, out):
    total = torch.empty(1, device=x.device)
    partial_kernel[(triton.cdiv(x.numel(), 4096),)](x, total, x.numel(), BLOCK=4096)
    divide_kernel[(1,)](total, out, x.numel())
