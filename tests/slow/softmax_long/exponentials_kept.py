# slow: a first kernel stores all exponentials in a matrix of their own, and a second one reads them again to divide
# cause: extra traffic
# without_a_gpu: unnamed
from functools import cache

import torch
import triton
import triton.language as tl


@triton.jit
def exponentials_kernel(x_ptr, numerator_ptr, sums_ptr, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, BLOCK)
    row_max = -3.4e38
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
        row_max = tl.maximum(row_max, tl.max(x, axis=0))
    denominator = 0.0
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
        numerator = tl.exp(x - row_max)
        denominator += tl.sum(numerator, axis=0)
        tl.store(numerator_ptr + row * columns + column, numerator, mask=column < columns)
    tl.store(sums_ptr + row, denominator)


@triton.jit
def divide_kernel(numerator_ptr, sums_ptr, out_ptr, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    numerator = tl.load(numerator_ptr + row * columns + column, mask=mask)
    tl.store(out_ptr + row * out_stride + column, numerator / tl.load(sums_ptr + row), mask=mask)


@cache
def scratch(device, *shape):
    return torch.empty(shape, device=device)


def softmax_long(x, out):
    rows, columns = x.shape
    numerator, sums = scratch(x.device, rows, columns), scratch(x.device, rows)
    block = min(triton.next_power_of_2(columns), 32_768)
    exponentials_kernel[(rows,)](
        x, numerator, sums, x.stride(0), columns, BLOCK=block, num_warps=32 if block > 2048 else 4
    )
    grid = rows, triton.cdiv(columns, 4096)
    divide_kernel[grid](numerator, sums, out, out.stride(0), columns, BLOCK=4096, num_warps=8)
