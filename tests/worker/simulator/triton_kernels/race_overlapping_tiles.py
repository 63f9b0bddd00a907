# says: A race: program 0 and program 1 both store to `out[64]`, both in line 11.
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    i = start + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * (1 + start), mask=i < n)


def main():
    x, out = torch.randn(256), torch.zeros(256)
    kernel[(4,)](x, out, 256, BLOCK=64)
    return out, x * (1 + torch.arange(256) // 64 * 64)
