# right: several programs per row: each writes a maximum and a sum, and a second kernel combines them
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, max_ptr, sum_ptr, x_stride, columns, BLOCK: tl.constexpr):
    row, number = tl.program_id(1).to(tl.int64), tl.program_id(0)
    column = number * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
    highest = tl.maximum(tl.max(x, axis=0), -3e38)
    place = row * tl.num_programs(0) + number
    tl.store(max_ptr + place, highest)
    tl.store(sum_ptr + place, tl.sum(tl.exp(x - highest), axis=0))


@triton.jit
def normalise_kernel(x_ptr, out_ptr, max_ptr, sum_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr,
                     PIECES: tl.constexpr):  # fmt: skip
    row, number = tl.program_id(1).to(tl.int64), tl.program_id(0)
    count = tl.num_programs(0)
    piece = tl.arange(0, PIECES)
    maxima = tl.load(max_ptr + row * count + piece, mask=piece < count, other=-float("inf"))
    sums = tl.load(sum_ptr + row * count + piece, mask=piece < count, other=0.0)
    row_max = tl.max(maxima, axis=0)
    denominator = tl.sum(sums * tl.exp(maxima - row_max), axis=0)
    column = number * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=0.0)
    tl.store(out_ptr + row * out_stride + column, tl.exp(x - row_max) / denominator, mask=column < columns)


def softmax_long(x, out):
    rows, columns = x.shape
    pieces = triton.cdiv(columns, 8192)
    maxima, sums = torch.empty(2, rows, pieces, device=x.device)
    partial_kernel[(pieces, rows)](x, maxima, sums, x.stride(0), columns, BLOCK=8192, num_warps=8)
    normalise_kernel[(pieces, rows)](
        x, out, maxima, sums, x.stride(0), out.stride(0), columns, BLOCK=8192,
        PIECES=triton.next_power_of_2(pieces), num_warps=8,
    )  # fmt: skip
