# honest: a lambda for the grid, pointers counted up in steps
# exercise: vector_add
# runs: anywhere
# gates: passes
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x_ptr += offsets
    y_ptr += offsets
    out_ptr += offsets
    output = tl.load(x_ptr, mask=mask, other=0.0) + tl.load(y_ptr, mask=mask, other=0.0)
    tl.store(out_ptr, output, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    n_elements = out.numel()
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    add_kernel[grid](x, y, out, n_elements, BLOCK_SIZE=1024)
    return out
