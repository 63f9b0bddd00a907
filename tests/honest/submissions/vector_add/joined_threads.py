# honest: two Python threads launch one half each, and are joined
# exercise: vector_add
# runs: gpu
# gates: may miss
from concurrent.futures import ThreadPoolExecutor

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def part(x, y, out, stream):
    with torch.cuda.stream(stream):
        n = out.numel()
        if n:
            add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def vector_add(x, y, out):
    stream = torch.cuda.current_stream()
    half = triton.cdiv(out.numel(), 2)
    with ThreadPoolExecutor(max_workers=2) as pool:
        parts = [(x[:half], y[:half], out[:half]), (x[half:], y[half:], out[half:])]
        for future in [pool.submit(part, *tensors, stream) for tensors in parts]:
            future.result()
