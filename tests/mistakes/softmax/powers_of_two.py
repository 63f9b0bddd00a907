# mistake: tl.exp2 in place of tl.exp
# says: Powers of 2 were taken, not of e
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, xs, os, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * xs + c, mask=c < N, other=-float("inf"))
    e = tl.exp2(x - tl.max(x, axis=0))
    tl.store(o_ptr + r * os + c, e / tl.sum(e, axis=0), mask=c < N)


def softmax(x, out):
    M, N = x.shape
    kernel[(M,)](x, out, x.stride(0), out.stride(0), N, B=triton.next_power_of_2(N))
