# mistake: the row is converted to float16
# says: The elements were rounded to float16
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, xs, os, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * xs + c, mask=c < N, other=-float("inf")).to(tl.float16)
    x = (x - tl.max(x, axis=0)).to(tl.float32)
    e = tl.exp(x)
    tl.store(o_ptr + r * os + c, e / tl.sum(e, axis=0), mask=c < N)


def softmax(x, out):
    M, N = x.shape
    kernel[(M,)](x, out, x.stride(0), out.stride(0), N, B=triton.next_power_of_2(N))
