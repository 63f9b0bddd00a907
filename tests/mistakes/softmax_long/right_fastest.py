# right: a row over several programs, which keep their pieces in registers and wait for each other
# runs: anywhere
from functools import cache

import torch
import triton
import triton.language as tl

BLOCK = 8192


@triton.jit
def together_kernel(
    x_ptr, out_ptr, max_ptr, sum_ptr, done_ptr, x_stride, out_stride, columns, PIECES: tl.constexpr,
    MOST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, own = (tl.program_id(0) // PIECES).to(tl.int64), tl.program_id(0) % PIECES
    column = own * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
    own_max = tl.maximum(tl.max(x, axis=0), -3.4e38)
    numerator = tl.exp(x - own_max)
    tl.store(max_ptr + tl.program_id(0), own_max)
    tl.store(sum_ptr + tl.program_id(0), tl.sum(numerator, axis=0))
    tl.debug_barrier()  # both are stored before the count says so
    tl.atomic_add(done_ptr + row, 1, sem="release")
    while tl.atomic_add(done_ptr + row, 0, sem="acquire") < PIECES:
        pass
    each = tl.arange(0, MOST)
    at = row * PIECES + each
    maxima = tl.load(max_ptr + at, mask=each < PIECES, other=-3.4e38, cache_modifier=".cg")
    sums = tl.load(sum_ptr + at, mask=each < PIECES, other=0.0, cache_modifier=".cg")
    row_max = tl.max(maxima, axis=0)
    denominator = tl.sum(sums * tl.exp(maxima - row_max), axis=0)
    factor = tl.exp(own_max - row_max) / denominator
    tl.store(out_ptr + row * out_stride + column, numerator * factor, mask=column < columns)
    # The last one leaves a 0 for the next launch. Relaxed, it does not wait for this program's stores.
    if tl.atomic_add(done_ptr + row, 1, sem="relaxed") == 2 * PIECES - 1:
        tl.atomic_xchg(done_ptr + row, 0, sem="relaxed")


@triton.jit
def alone_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, BLOCK)
    row_max = -3.4e38
    denominator = 0.0
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        denominator = denominator * tl.exp(row_max - new_max) + tl.sum(tl.exp(x - new_max), axis=0)
        row_max = new_max
    for start in range(0, columns, BLOCK):
        column = start + piece
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=0.0)
        tl.store(out_ptr + row * out_stride + column, tl.exp(x - row_max) / denominator, mask=column < columns)


@cache
def scratch(device, rows, pieces):
    results = torch.empty(2, rows * pieces, device=device)
    return results[0], results[1], torch.zeros(rows, dtype=torch.int32, device=device)


@cache
def resident(device):
    """How many programs surely run at the same time: one on each SM. The interpreter runs one after the other."""
    return 1 if triton.knobs.runtime.interpret else torch.cuda.get_device_properties(device).multi_processor_count


def softmax_long(x, out):
    rows, columns = x.shape
    pieces = triton.cdiv(columns, BLOCK)
    strides = x.stride(0), out.stride(0)
    if pieces <= resident(x.device):  # programs that wait need the others to run
        together_kernel[(rows * pieces,)](
            x, out, *scratch(x.device, rows, pieces), *strides, columns, PIECES=pieces,
            MOST=triton.next_power_of_2(pieces), BLOCK=BLOCK, num_warps=8,
        )  # fmt: skip
    else:
        alone_kernel[(rows,)](x, out, *strides, columns, BLOCK=BLOCK, num_warps=8)
