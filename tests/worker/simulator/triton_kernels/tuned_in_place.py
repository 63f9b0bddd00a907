# says: `triton.autotune` runs `kernel` many times to time it, and each run changes what the last one left in `x`
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 64}, num_warps=4)], key=["n"])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def main():
    x = torch.randn(100)
    right = 2 * x
    kernel[(2,)](x, 100)
    return x, right
