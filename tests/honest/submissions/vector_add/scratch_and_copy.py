# honest: computes into memory of its own and copies the result over
# exercise: vector_add
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    result = torch.empty_like(out)
    grid = (triton.cdiv(result.numel(), 1024),)
    add_kernel[grid](x, y, result, result.numel(), BLOCK=1024)
    out.copy_(result)
