# honest: exp2 in place of exp, the factor folded in
# exercise: softmax
# runs: anywhere
# gates: passes
import math

import triton
import triton.language as tl

LOG2_E = tl.constexpr(math.log2(math.e))


@triton.jit
def kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask, other=-float("inf"))
    e = tl.exp2((x - tl.max(x, axis=0)) * LOG2_E)
    tl.store(out_ptr + row * out_stride + at, e * (1.0 / tl.sum(e, axis=0)), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    kernel[(rows, 1, 1)](x, out, x.stride(0), out.stride(0), columns, block, num_warps=min(max(block // 512, 1), 32))
