# mistake: the columns of the output are taken to be adjacent in memory
# says: `out` is a transposed view here: its columns are not adjacent in memory.
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def outer_kernel(u, v, out, m, n, stride, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    a = tl.load(u + i, mask=i < m, other=0.0)
    b = tl.load(v + j, mask=j < n, other=0.0)
    tl.store(out + i[None, :] * stride + j[:, None], a[None, :] * b[:, None], mask=(i[None, :] < m) & (j[:, None] < n))


def outer_product(u, v, out):
    m, n = out.shape
    outer_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 64))](u, v, out, m, n, out.stride(0), BM=32, BN=64)
