# honest: a table of kernels by the length of a row: one block, or a loop
# exercise: softmax
# runs: anywhere
# gates: passes
import bisect

import triton
import triton.language as tl


@triton.jit
def in_one(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + row * x_stride + at)
    else:
        x = tl.load(x_ptr + row * x_stride + at, mask=at < columns, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    result = numerator / tl.sum(numerator, axis=0)
    if EVEN:
        tl.store(out_ptr + row * out_stride + at, result)
    else:
        tl.store(out_ptr + row * out_stride + at, result, mask=at < columns)


@triton.jit
def in_steps(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    x_ptr += tl.program_id(0) * x_stride
    out_ptr += tl.program_id(0) * out_stride
    at = tl.arange(0, BLOCK)
    m = tl.load(x_ptr + at, mask=at < columns, other=-float("inf"))
    for begin in range(BLOCK, columns, BLOCK):
        m = tl.maximum(m, tl.load(x_ptr + begin + at, mask=begin + at < columns, other=-float("inf")))
    row_max = tl.max(m, axis=0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for begin in range(0, columns, BLOCK):
        total += tl.exp(tl.load(x_ptr + begin + at, mask=begin + at < columns, other=-float("inf")) - row_max)
    factor = 1.0 / tl.sum(total, axis=0)
    for begin in range(0, columns, BLOCK):
        x = tl.load(x_ptr + begin + at, mask=begin + at < columns, other=-float("inf"))
        tl.store(out_ptr + begin + at, tl.exp(x - row_max) * factor, mask=begin + at < columns)


LONGEST = [256, 1024, 4096, 8192, 16384]
CHOICES = [(in_one, 1), (in_one, 2), (in_one, 8), (in_one, 16), (in_one, 32), (in_steps, 8)]


def softmax(x, out):
    rows, columns = x.shape
    kernel, warps = CHOICES[bisect.bisect_left(LONGEST, columns)]
    block = triton.next_power_of_2(columns) if kernel is in_one else 4096
    kernel[(rows,)](
        x, out, x.stride(0), out.stride(0), columns, BLOCK=block, EVEN=block == columns, num_warps=warps
    )
