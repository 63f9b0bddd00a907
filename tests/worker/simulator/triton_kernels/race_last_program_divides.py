# says: A race: program 0 changes `out[0]` by an atomic and program 3 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, i < n, 0.0)))
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(out_ptr, tl.load(out_ptr) / n)


def main():
    x, out = torch.randn(1000), torch.zeros(1)
    kernel[(4,)](x, out, 1000, BLOCK=256)
    return out, x.mean()
