# honest: a first kernel writes each row's maximum and sum to memory of its own, a second kernel divides
# exercise: softmax
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl


@triton.jit
def statistics(x_ptr, max_ptr, sum_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < columns, other=-float("inf"))
    row_max = tl.max(x, axis=0)
    tl.store(max_ptr + row, row_max)
    tl.store(sum_ptr + row, tl.sum(tl.exp(x - row_max), axis=0))


@triton.jit
def normalise(x_ptr, out_ptr, max_ptr, sum_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < columns
    x = tl.load(x_ptr + row * x_stride + at, mask=mask)
    result = tl.exp(x - tl.load(max_ptr + row)) / tl.load(sum_ptr + row)
    tl.store(out_ptr + row * out_stride + at, result, mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    row_max, row_sum = torch.empty((2, rows), device=x.device, dtype=x.dtype).unbind(0)
    block = triton.next_power_of_2(columns)
    statistics[(rows,)](x, row_max, row_sum, x.stride(0), columns, BLOCK=block, num_warps=min(max(block // 512, 1), 32))
    grid = (rows, triton.cdiv(columns, 1024))
    normalise[grid](x, out, row_max, row_sum, x.stride(0), out.stride(0), columns, BLOCK=1024)
