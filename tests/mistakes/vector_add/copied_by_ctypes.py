# mistake: the result is copied by a function of the CPU
# says: which cannot reach a GPU's memory
# on_gpu: crashed
# runs: anywhere
import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def launch(x, y, out):
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)


def vector_add(x, y, out):
    tmp = torch.empty_like(out)
    launch(x, y, tmp)
    ctypes.memmove(out.data_ptr(), tmp.data_ptr(), 4 * x.numel())
