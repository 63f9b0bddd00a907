# mistake: the sum is rescaled by the inverse factor
# says: Is the factor `tl.exp(old_max - new_max)`?
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, xs, os, n, B: tl.constexpr):
    row = tl.program_id(0)
    m = -3.4e38
    s = 0.0
    for at in range(0, n, B):
        c = at + tl.arange(0, B)
        x = tl.load(x_ptr + row * xs + c, mask=c < n, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(new - m) + tl.sum(tl.exp(x - new), 0)
        m = new
    for at in range(0, n, B):
        c = at + tl.arange(0, B)
        x = tl.load(x_ptr + row * xs + c, mask=c < n, other=-float("inf"))
        tl.store(o_ptr + row * os + c, tl.exp(x - m) / s, mask=c < n)


def softmax_long(x, out):
    kernel[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], B=4096, num_warps=8)
