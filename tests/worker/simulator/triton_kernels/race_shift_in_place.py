# says: A race: program 0 loads `x[64]` and program 1 stores to it, in line 10 and line 11.
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    following = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x_ptr + i, following, mask=i < n)


def main():
    x = torch.randn(200)
    right = torch.cat([x[1:], torch.zeros(1)])
    kernel[(4,)](x, 200, BLOCK=64)
    return x, right
