# says: A race: program 0 stores to `largest[0]` and program 1 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, largest_ptr, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    if tl.program_id(0) == 0:
        every = tl.arange(0, WHOLE)
        tl.store(largest_ptr, tl.max(tl.load(x_ptr + every, mask=every < n, other=-float("inf")), axis=0))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x - tl.load(largest_ptr), mask=i < n)


def main():
    x, out = torch.randn(500), torch.zeros(500)
    kernel[(4,)](x, out, torch.zeros(1), 500, BLOCK=128, WHOLE=512)
    return out, x - x.max()
