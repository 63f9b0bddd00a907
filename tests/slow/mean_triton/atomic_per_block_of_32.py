# slow: one atomic per 32 elements
# cause: atomics
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float64)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


@triton.jit
def divide_kernel(sum_ptr, out_ptr, n):
    tl.store(out_ptr, (tl.load(sum_ptr) / n).to(tl.float32))


def mean_triton(x, out):
    import torch

    n = x.numel()
    total = torch.zeros(1, dtype=torch.float64, device=x.device)
    sum_kernel[(triton.cdiv(n, 32),)](x, total, n, BLOCK=32, num_warps=1)
    divide_kernel[(1,)](total, out, n)
