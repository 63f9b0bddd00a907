# mistake: the blocks of u and v are multiplied without axes
# says: Each row of a tile is `u * v`, element by element.
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def kernel(u_ptr, v_ptr, o_ptr, M, N, sm, sn, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    u = tl.load(u_ptr + r, mask=r < M)
    v = tl.load(v_ptr + c, mask=c < N)
    tl.store(o_ptr + r[:, None] * sm + c[None, :] * sn, u * v, mask=(r[:, None] < M) & (c[None, :] < N))


def outer_product(u, v, out):
    M, N = out.shape
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](u, v, out, M, N, *out.stride(), B=32)
