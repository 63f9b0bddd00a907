# slow: writes into a matrix of its own, which torch then copies into `out`
# cause: extra operations
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + column, e / tl.sum(e, axis=0), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    own = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(rows,)](x, own, x.stride(0), own.stride(0), columns, BLOCK=block, num_warps=8)
    out.copy_(own)
