# right: maximum and sum by one reduction with a function of its own
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def _merge(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@triton.jit
def kernel(x_ptr, o_ptr, sx, so, n, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    z = tl.load(x_ptr + r * sx + c, mask=c < n, other=-3.4e38)
    z = tl.maximum(z, -3.4e38)
    one = tl.where(c < n, 1.0, 0.0)
    m, s = tl.reduce((z, one), 0, _merge)
    tl.store(o_ptr + r * so + c, tl.exp(z - m) / s, mask=c < n)


def softmax(x, out):
    B = max(triton.next_power_of_2(x.shape[1]), 2)
    kernel[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], B=B)
