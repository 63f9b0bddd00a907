# mistake: the number of the program becomes an int8, which ends at 127
# says: were never written
# on_gpu: becomes an `int8`, which ends at 127
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int8)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * out_stride + column, e / tl.sum(e), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
