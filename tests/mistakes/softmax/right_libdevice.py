# right: the exponential of libdevice
# runs: anywhere

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softmax_kernel(x_ptr, out_ptr, xs, os, columns, SIZE: tl.constexpr):
    lane = tl.arange(0, SIZE)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * xs + lane, mask=lane < columns, other=-float("inf"))
    e = libdevice.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * os + lane, e / tl.sum(e, axis=0), mask=lane < columns)


def softmax(x, out):
    softmax_kernel[(x.shape[0],)](
        x, out, x.stride(0), out.stride(0), x.shape[1], SIZE=triton.next_power_of_2(x.shape[1])
    )
