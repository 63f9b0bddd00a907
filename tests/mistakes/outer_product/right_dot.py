# right: a product of matrices with one column and one row that are not zero
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def kernel(u_ptr, v_ptr, o_ptr, M, N, sm, sn, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, 16)
    u = tl.load(u_ptr + rows[:, None] + 0 * k[None, :], mask=(rows[:, None] < M) & (k[None, :] == 0), other=0.0)
    v = tl.load(v_ptr + cols[None, :] + 0 * k[:, None], mask=(cols[None, :] < N) & (k[:, None] == 0), other=0.0)
    tile = tl.dot(u, v, input_precision="ieee")
    tl.store(o_ptr + rows[:, None] * sm + cols[None, :] * sn, tile, mask=(rows[:, None] < M) & (cols[None, :] < N))


def outer_product(u, v, out):
    M, N = out.shape
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](u, v, out, M, N, out.stride(0), out.stride(1), B=64)
