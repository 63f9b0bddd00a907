# mistake: one block for all elements
# says: 2^20 = 1048576
# runs: simulator

import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(x, axis=0) / n)


def mean_triton(x, out):
    mean_kernel[(1,)](x, out, x.numel(), SIZE=triton.next_power_of_2(x.numel()))
