# mistake: the condition of `torch.where` is on the CPU
# says: One tensor is on the GPU and another is on the CPU.
# runs: anywhere
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
    launch(torch.where(torch.ones(x.numel(), dtype=torch.bool), x, y), y, out)
