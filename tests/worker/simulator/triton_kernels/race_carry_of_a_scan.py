# says: A race: program 0 stores to `carry[1]` and program 1 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, carry_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    sums = tl.cumsum(tl.load(x_ptr + i), axis=0) + tl.load(carry_ptr + program)
    tl.store(out_ptr + i, sums)
    tl.store(carry_ptr + program + 1, tl.max(sums, axis=0))


def main():
    x, out = torch.rand(1024), torch.zeros(1024)
    kernel[(4,)](x, out, torch.zeros(5), BLOCK=256)
    return out, x.cumsum(0)
