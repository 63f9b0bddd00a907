# right: the program that draws the last ticket adds the partial sums, and resets the ticket
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, sums_ptr, ticket_ptr, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i), axis=0))
    tl.debug_barrier()
    if tl.atomic_add(ticket_ptr, 1) == tl.num_programs(0) - 1:
        tl.store(out_ptr, tl.sum(tl.load(sums_ptr + tl.arange(0, PROGRAMS)), axis=0))
        tl.store(ticket_ptr, 0)


def main():
    x, out = torch.randn(256), torch.empty(1)
    kernel[(4,)](x, out, torch.empty(4), torch.zeros(1, dtype=torch.int32), BLOCK=64, PROGRAMS=4)
    return out, x.sum()
