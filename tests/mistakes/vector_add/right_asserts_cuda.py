# right: asserts that its tensors are on a GPU
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def vector_add(x, y, out):
    assert all(each.is_cuda for each in (x, y, out)), "tensors must be on the GPU"
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SIZE=1024)
