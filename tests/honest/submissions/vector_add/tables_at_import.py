# honest: tables made at import: a dictionary, and a tensor that the kernel reads in each program
# exercise: vector_add
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl

BLOCKS = {1 << power: min(1 << power, 1024) for power in range(28)}
MOST_PROGRAMS = 1 << 19
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STARTS = torch.arange(MOST_PROGRAMS, dtype=torch.int32).to(DEVICE)  # where each program begins, in blocks


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, starts, n, BLOCK: tl.constexpr):
    block = tl.load(starts + tl.program_id(0))
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    n = x.numel()
    block = BLOCKS.get(triton.next_power_of_2(n), 1024)
    assert triton.cdiv(n, block) <= MOST_PROGRAMS
    add_kernel[(triton.cdiv(n, block),)](x, y, out, STARTS, n, BLOCK=block)
