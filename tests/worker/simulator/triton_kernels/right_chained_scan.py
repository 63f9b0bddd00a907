# right: a scan in which each program waits for the one before it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, carry_ptr, ready_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    sums = tl.cumsum(tl.load(x_ptr + i), axis=0)
    if program > 0:
        while tl.atomic_add(ready_ptr + program - 1, 0) == 0:
            pass
        sums += tl.load(carry_ptr + program - 1)
    tl.store(carry_ptr + program, tl.max(sums, axis=0))
    tl.debug_barrier()
    tl.atomic_xchg(ready_ptr + program, 1)
    tl.store(out_ptr + i, sums)


def main():
    x, out = torch.rand(256), torch.empty(256)
    kernel[(4,)](x, out, torch.empty(4), torch.zeros(4, dtype=torch.int32), BLOCK=64)
    return out, x.cumsum(0)
