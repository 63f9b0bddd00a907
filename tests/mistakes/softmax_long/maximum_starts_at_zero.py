# mistake: the running maximum starts at 0
# says: 0 won the maximum in rows far below it
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def softmax_long_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    highest = 0.0
    total = 0.0
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + row * x_stride + start + j, mask=start + j < columns, other=-float("inf"))
        higher = tl.maximum(highest, tl.max(x, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(x - higher), axis=0)
        highest = higher
    for start in range(0, columns, BLOCK):
        mask = start + j < columns
        x = tl.load(x_ptr + row * x_stride + start + j, mask=mask)
        tl.store(out_ptr + row * out_stride + start + j, tl.exp(x - highest) / total, mask=mask)


def softmax_long(x, out):
    softmax_long_kernel[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=4096, num_warps=8)
