# mistake: the tickets are kept by length and not set back, so that no program of a second launch draws the last one
# says: Something is left from that call
# runs: simulator
import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, sums_ptr, ticket_ptr, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    program = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for block in range(program, tl.cdiv(n, BLOCK), PROGRAMS):
        i = block * BLOCK + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(sums_ptr + program, tl.sum(sums))
    if tl.atomic_add(ticket_ptr, 1, sem="acq_rel") == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(sums_ptr + tl.arange(0, PROGRAMS))) / n)


scratch = {}


def mean_triton(x, out):
    n = x.numel()
    if n not in scratch:
        scratch[n] = torch.empty(8, device=x.device), torch.zeros(1, dtype=torch.int32, device=x.device)
    mean_kernel[(8,)](x, out, *scratch[n], n, BLOCK=1024, PROGRAMS=8)
