# honest: tensor descriptors made on the host (TMA on Hopper)
# exercise: vector_add
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def add_kernel(x_desc, y_desc, out_desc, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * BLOCK
    out_desc.store([begin], x_desc.load([begin]) + y_desc.load([begin]))


def vector_add(x, y, out):
    block = 1024
    descriptors = [TensorDescriptor.from_tensor(tensor, [block]) for tensor in (x, y, out)]
    add_kernel[(triton.cdiv(out.numel(), block),)](*descriptors, BLOCK=block)
