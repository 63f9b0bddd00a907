# honest: tensor descriptors made in the kernel, with an allocator for their memory
# exercise: vector_add
# runs: anywhere
# gates: may miss
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, programs, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    y = tl.make_tensor_descriptor(y_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    out = tl.make_tensor_descriptor(out_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), programs):
        out.store([block * BLOCK], x.load([block * BLOCK]) + y.load([block * BLOCK]))


def allocate(size: int, alignment: int, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


triton.set_allocator(allocate)


def vector_add(x, y, out):
    n = x.numel()
    programs = min(triton.cdiv(n, 2048), 1056)
    add_kernel[(programs,)](x, y, out, n, programs, BLOCK=2048, num_warps=8)
