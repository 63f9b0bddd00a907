# honest: Triton's own tl.softmax within the kernel
# exercise: softmax
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    tl.store(out_ptr + row * out_stride + at, tl.softmax(x), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 512, 1), 32)
    kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=block, num_warps=warps)
