# slow: torch copies the padded rows into a packed matrix before the kernel, and the packed result into `out` after it
# cause: extra operations
import torch
import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, gain_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(column < columns, 4)
    gain = tl.load(gain_ptr + row)
    x = tl.load(x_ptr + tl.multiple_of(row * x_stride, 4) + column, mask=mask)
    tl.store(out_ptr + tl.multiple_of(row * out_stride, 4) + column, x * gain, mask=mask)


def widen(x, gain, out):
    rows, columns = x.shape
    grid = rows, triton.cdiv(columns, 1024)
    packed = x.contiguous()  # without padding, so that the rows are aligned
    scaled = torch.empty_like(packed)
    wide_kernel[grid](packed, gain, scaled, packed.stride(0), scaled.stride(0), columns, BLOCK=1024)
    out.copy_(scaled)
