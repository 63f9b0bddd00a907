# right: vector add
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


def main():
    x, y, out = torch.randn(1000), torch.randn(1000), torch.empty(1000)
    kernel[(triton.cdiv(1000, 256),)](x, y, out, 1000, BLOCK=256)
    return out, x + y
