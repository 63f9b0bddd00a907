# mistake: masked elements are left out of the sum, but not of the maximum
# says: The masked elements won the maximum
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + c, mask=c < columns, other=0.0)
    e = tl.where(c < columns, tl.exp(x - tl.max(x, axis=0)), 0.0)
    tl.store(out_ptr + row * out_stride + c, e / tl.sum(e, axis=0), mask=c < columns)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=block)
