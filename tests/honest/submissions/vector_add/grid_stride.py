# honest: a fixed number of programs, each with a loop over its blocks
# exercise: vector_add
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for begin in range(tl.program_id(0) * BLOCK, n, step):
        at = begin + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


if torch.cuda.is_available():
    PROGRAMS = torch.cuda.get_device_properties(0).multi_processor_count * 16
else:
    PROGRAMS = 8


def vector_add(x, y, out):
    n = x.numel()
    add_kernel[(min(PROGRAMS, triton.cdiv(n, 1024)),)](x, y, out, n, BLOCK=1024, num_warps=4)
