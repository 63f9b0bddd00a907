# mistake: `tl.reduce` gets a function without @triton.jit
# says: `plus` is a plain Python function
# runs: anywhere

import triton
import triton.language as tl


def plus(a, b):
    return a + b


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    part = tl.reduce(tl.load(x_ptr + i, mask=i < n, other=0.0), 0, plus)
    tl.atomic_add(out_ptr, part / n)


def mean_triton(x, out):
    out.zero_()
    mean_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), SIZE=1024)
