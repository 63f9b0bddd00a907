# mistake: x and out are exchanged in the launch
# says: The kernel wrote to `x`, which is an input.
# on_gpu: they are exchanged, so the kernel writes to an input
# runs: simulator

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK_SIZE)
    mask = lane < columns
    x = tl.load(x_ptr + row * x_stride + lane, mask=mask, other=float("-inf"))
    z = tl.exp(x - tl.max(x, axis=0))
    y = z / tl.sum(z, axis=0)
    tl.store(out_ptr + row * out_stride + lane, y, mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    num_warps = 4 if block <= 2048 else 8 if block <= 8192 else 16
    softmax_kernel[(rows,)](out, x, x.stride(0), out.stride(0), columns, BLOCK_SIZE=block, num_warps=num_warps)
