# mistake: the mask compares rows with the number of columns, and columns with the number of rows
# says: is the mask swapped?
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def k(u, v, o, m, n, s0, s1, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(u + i, mask=i < n)
    y = tl.load(v + j, mask=j < m)
    tl.store(o + i[:, None] * s0 + j[None, :] * s1, x[:, None] * y[None, :], mask=(i < n)[:, None] & (j < m)[None, :])


def outer_product(u, v, out):
    m, n = out.shape
    k[(triton.cdiv(m, 64), triton.cdiv(n, 64))](u, v, out, m, n, *out.stride(), B=64)
