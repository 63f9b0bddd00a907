# mistake: the kernel calls NumPy
# says: `np.arange` is NumPy's, and a kernel can only call functions that Triton compiles.
# on_gpu: A kernel called a function that is not part of Triton.
# runs: anywhere

import numpy as np
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + np.arange(0, SIZE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def vector_add(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIZE=1024)
