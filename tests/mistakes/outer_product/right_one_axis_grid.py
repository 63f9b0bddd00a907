# right: a grid with one axis, and the tile from a division
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def tile_kernel(u_ptr, v_ptr, out_ptr, M, N, stride_m, stride_n, SIZE: tl.constexpr):
    tiles_n = tl.cdiv(N, SIZE)
    m = tl.program_id(0) // tiles_n * SIZE + tl.arange(0, SIZE)[:, None]
    n = tl.program_id(0) % tiles_n * SIZE + tl.arange(0, SIZE)[None, :]
    product = tl.load(u_ptr + m, m < M, 0.0) * tl.load(v_ptr + n, n < N, 0.0)
    tl.store(out_ptr + m * stride_m + n * stride_n, product, (m < M) & (n < N))


def outer_product(u, v, out):
    M, N = out.shape
    grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64),)
    tile_kernel[grid](u, v, out, M, N, *out.stride(), SIZE=64)
