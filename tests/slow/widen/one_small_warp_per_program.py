# slow: a program is one warp with 128 elements: a quarter of a million programs
# cause: small programs
# blind: missed
import triton
import triton.language as tl

PER_PROGRAM = 128  # 32 threads with four elements each


@triton.jit
def scale_small(x_ptr, gain_ptr, out_ptr, stride_x, stride_out, width, SIZE: tl.constexpr):
    row = tl.program_id(1)
    cols = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    keep = tl.max_constancy(cols < width, 4)
    x_row = x_ptr + tl.multiple_of(row * stride_x, 4)
    out_row = out_ptr + tl.multiple_of(row * stride_out, 4)
    scaled = tl.load(x_row + cols, mask=keep) * tl.load(gain_ptr + row)
    tl.store(out_row + cols, scaled, mask=keep)


def widen(x, gain, out):
    height, width = x.shape
    grid = triton.cdiv(width, PER_PROGRAM), height
    scale_small[grid](x, gain, out, x.stride(0), out.stride(0), width, SIZE=PER_PROGRAM, num_warps=1)
