# says: A race: program 0 stores to `out[0]` and program 1 changes it by an atomic
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out_ptr, 0.0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, i < n, 0.0)))


def main():
    x, out = torch.randn(1000), torch.full((1,), 5.0)
    kernel[(4,)](x, out, 1000, BLOCK=256)
    return out, x.sum()
