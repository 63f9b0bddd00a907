# says: A race: program 0 stores to `out[0]` and program 1 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    largest = tl.max(tl.load(x_ptr + i), axis=0)
    if largest > tl.load(out_ptr):
        tl.store(out_ptr, largest)


def main():
    x, out = torch.arange(512.0), torch.zeros(1)
    kernel[(4,)](x, out, BLOCK=128)
    return out, x.max()
