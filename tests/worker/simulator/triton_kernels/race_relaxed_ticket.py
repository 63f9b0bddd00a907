# says: A race: program 0 stores to `sums[0]` and program 3 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, sums_ptr, ticket_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, i < n, 0.0)))
    if tl.atomic_add(ticket_ptr, 1, sem="relaxed") == tl.num_programs(0) - 1:
        tl.store(out_ptr, tl.sum(tl.load(sums_ptr + tl.arange(0, 4))))


def main():
    x, out = torch.randn(1000), torch.zeros(1)
    kernel[(4,)](x, out, torch.zeros(4), torch.zeros(1, dtype=torch.int32), 1000, BLOCK=256)
    return out, x.sum()
