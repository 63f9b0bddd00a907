# right: one launch, whose last program adds the partial sums; short vectors do not displace what is in the L2 cache
# runs: anywhere
from functools import cache

import torch
import triton
import triton.language as tl

BLOCK = 4096
FITS = 1 << 25  # elements: 128 MiB, more than any L2 cache has


@triton.jit
def mean_kernel(x_ptr, out_ptr, sums_ptr, ticket_ptr, n, BLOCK: tl.constexpr, MOST: tl.constexpr, SHORT: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(program * BLOCK, n, programs * BLOCK):
        i = start + lane
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0, eviction_policy="evict_first" if SHORT else "")
    tl.store(sums_ptr + program, tl.sum(sums, axis=0))
    tl.debug_barrier()  # the sum is stored before the ticket says so
    if tl.atomic_add(ticket_ptr, 1, sem="acq_rel", scope="gpu") == programs - 1:
        place = tl.arange(0, MOST)
        found = tl.load(sums_ptr + place, mask=place < programs, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr, tl.sum(found, axis=0) / n)
        tl.store(ticket_ptr, 0)


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@cache
def scratch(device, size):
    return torch.empty(size, device=device), torch.zeros(1, dtype=torch.int32, device=device)


def mean_triton(x, out):
    n = x.numel()
    programs = min(4 * sm_count(x.device), triton.cdiv(n, BLOCK))
    most = triton.next_power_of_2(programs)
    mean_kernel[(programs,)](x, out, *scratch(x.device, most), n, BLOCK=BLOCK, MOST=most, SHORT=n < FITS, num_warps=16)
