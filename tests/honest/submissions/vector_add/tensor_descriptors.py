# honest: tensor descriptors made on the host (TMA on Hopper), which end at multiples of 16 bytes; the rest by pointers
# exercise: vector_add
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BLOCK = 1024


@triton.jit
def add_blocks(x_desc, y_desc, out_desc, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * BLOCK
    out_desc.store([begin], x_desc.load([begin]) + y_desc.load([begin]))


@triton.jit
def add_rest(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out):
    n = out.numel()
    whole = n // BLOCK * BLOCK
    if whole:
        blocks = [TensorDescriptor.from_tensor(tensor[:whole], [BLOCK]) for tensor in (x, y, out)]
        add_blocks[(whole // BLOCK,)](*blocks, BLOCK=BLOCK)
    if whole < n:
        add_rest[(1,)](x[whole:], y[whole:], out[whole:], n - whole, BLOCK=BLOCK)
