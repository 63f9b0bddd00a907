# honest: a stream of its own, joined by wait_stream in both directions
# exercise: vector_add
# runs: gpu
# gates: passes
import functools

import torch
import triton
import triton.language as tl


@functools.cache
def side_stream():
    return torch.cuda.Stream()


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    main, side = torch.cuda.current_stream(), side_stream()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        n = out.numel()
        add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    main.wait_stream(side)
