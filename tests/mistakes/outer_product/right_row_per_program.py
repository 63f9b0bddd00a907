# right: a program per row, which loops over blocks of columns
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def row_kernel(u_ptr, v_ptr, out_ptr, N, stride_m, stride_n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    factor = tl.load(u_ptr + row)
    for start in range(0, N, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(v_ptr + column, mask=column < N)
        tl.store(out_ptr + row * stride_m + column * stride_n, factor * values, mask=column < N)


def outer_product(u, v, out):
    row_kernel[(len(u),)](u, v, out, len(v), *out.stride(), BLOCK=128)
