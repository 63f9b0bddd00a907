# says: A race: program 0 changes `sum[0]` by an atomic and program 3 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, sum_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + i), axis=0))
    if tl.program_id(0) == 3:
        tl.store(out_ptr, tl.load(sum_ptr) / (4 * BLOCK))


def main():
    x, out = torch.randn(256), torch.zeros(1)
    kernel[(4,)](x, out, torch.zeros(1), BLOCK=64)
    return out, x.mean()
