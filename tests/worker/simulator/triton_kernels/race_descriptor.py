# says: A race: program 0 stores to `out[0, 0]` and program 1 loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[rows, 16], strides=[16, 1], block_shape=[BLOCK, 16])
    out = tl.make_tensor_descriptor(out_ptr, shape=[1, 16], strides=[16, 1], block_shape=[1, 16])
    sums = tl.sum(x.load([tl.program_id(0) * BLOCK, 0]), axis=0)[None, :]
    out.store([0, 0], out.load([0, 0]) + sums)


def main():
    x, out = torch.randn(20, 16), torch.zeros(1, 16)
    kernel[(3,)](x, out, 20, BLOCK=8)
    return out, x.sum(0, keepdim=True)
