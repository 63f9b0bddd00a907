# honest: exp(x - max - log(sum)), the sum in float64
# exercise: softmax
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl


@triton.jit
def log_sum(shifted):
    return tl.log(tl.sum(tl.exp(shifted).to(tl.float64), axis=0).to(tl.float32))


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    shifted = x - tl.max(x, 0)
    tl.store(out_ptr + row * out_stride + at, tl.exp(shifted - log_sum(shifted)), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 512, 1), 32)
    kernel[(rows,)](x, out, x.stride(0), out.stride(0), columns, BLOCK=block, num_warps=warps)
