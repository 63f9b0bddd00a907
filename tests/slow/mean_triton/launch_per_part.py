# slow: a loop on the host launches the kernel for each 65,536 elements
# cause: many launches
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float64)
    tl.atomic_add(total_ptr, tl.sum(x, axis=0))


@triton.jit
def divide_kernel(total_ptr, out_ptr, n):
    tl.store(out_ptr, (tl.load(total_ptr) / n).to(tl.float32))


def mean_triton(x, out):
    import torch

    n = x.numel()
    total = torch.zeros(1, dtype=torch.float64, device=x.device)
    for first in range(0, n, 65536):
        part_kernel[(1,)](x[first:], total, n - first, BLOCK=65536, num_warps=32)
    divide_kernel[(1,)](total, out, n)
