# slow: a program adds 32 elements, so a million programs of 4 warps start for almost no work each
# cause: small programs
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    block_start = tl.program_id(0) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)  # reads n in all
    y = tl.load(y_ptr + offsets, mask=mask)  # reads n in all
    tl.store(out_ptr + offsets, x + y, mask=mask)  # writes n in all


def vector_add(x, y, out):
    n = x.numel()
    block_size = 32  # a warp
    grid = (triton.cdiv(n, block_size),)
    add_kernel[grid](x, y, out, n, BLOCK_SIZE=block_size)
