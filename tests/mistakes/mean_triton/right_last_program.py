# right: one launch; the program that draws the last ticket adds the partial sums
# runs: anywhere
from functools import cache

import torch
import triton
import triton.language as tl

PROGRAMS = 256


@triton.jit
def mean_kernel(x_ptr, out_ptr, sums_ptr, ticket_ptr, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for block in range(program, tl.cdiv(n, BLOCK), programs):
        i = block * BLOCK + lane
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(sums_ptr + program, tl.sum(sums))
    tl.debug_barrier()
    if tl.atomic_add(ticket_ptr, 1, sem="acq_rel", scope="gpu") == programs - 1:
        place = tl.arange(0, PROGRAMS)
        partial = tl.load(sums_ptr + place, mask=place < programs, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(partial) / n)
        tl.store(ticket_ptr, 0)


@cache
def scratch(device):
    return torch.empty(PROGRAMS, device=device), torch.zeros(1, dtype=torch.int32, device=device)


def mean_triton(x, out):
    n = x.numel()
    programs = min(PROGRAMS, triton.cdiv(n, 4096))
    mean_kernel[(programs,)](x, out, *scratch(x.device), n, BLOCK=4096, PROGRAMS=PROGRAMS, num_warps=8)
