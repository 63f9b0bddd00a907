# honest: tensor descriptors made in the kernel, with an allocator for their memory; the end by pointers
# exercise: vector_add
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, programs, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = n // COLUMNS
    some = tl.maximum(rows, 1)
    x = tl.make_tensor_descriptor(x_ptr, shape=[some, COLUMNS], strides=[COLUMNS, 1], block_shape=[ROWS, COLUMNS])
    y = tl.make_tensor_descriptor(y_ptr, shape=[some, COLUMNS], strides=[COLUMNS, 1], block_shape=[ROWS, COLUMNS])
    out = tl.make_tensor_descriptor(out_ptr, shape=[some, COLUMNS], strides=[COLUMNS, 1], block_shape=[ROWS, COLUMNS])
    for block in range(tl.program_id(0), tl.cdiv(rows, ROWS), programs):
        out.store([block * ROWS, 0], x.load([block * ROWS, 0]) + y.load([block * ROWS, 0]))
    if tl.program_id(0) == 0:  # what is left is less than a row
        at = rows * COLUMNS + tl.arange(0, COLUMNS)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n), mask=at < n)


def allocate(size: int, alignment: int, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


triton.set_allocator(allocate)


def vector_add(x, y, out):
    n = x.numel()
    programs = max(1, min(triton.cdiv(n, 2048), 1056))
    add_kernel[(programs,)](x, y, out, n, programs, ROWS=8, COLUMNS=256, num_warps=8)
