# mistake: the mask of the store covers the rows only
# says: Compare the index at which each element is stored with its bound, along every axis
# runs: simulator

import triton
import triton.language as tl


@triton.jit
def outer_kernel(u_ptr, v_ptr, out_ptr, M, N, stride_m, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    u = tl.load(u_ptr + rows, mask=rows < M)
    v = tl.load(v_ptr + columns, mask=columns < N)
    place = rows[:, None] * stride_m + columns[None, :] * stride_n
    inside = rows[:, None] < M
    tl.store(out_ptr + place, u[:, None] * v[None, :], mask=inside)


def outer_product(u, v, out):
    M, N = out.shape
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 64))
    outer_kernel[grid](u, v, out, M, N, *out.stride(), BLOCK_M=32, BLOCK_N=64)
