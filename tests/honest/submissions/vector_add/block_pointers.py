# honest: tl.make_block_ptr with boundary checks in place of masks
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * BLOCK
    x = tl.make_block_ptr(x_ptr, shape=(n,), strides=(1,), offsets=(begin,), block_shape=(BLOCK,), order=(0,))
    y = tl.make_block_ptr(y_ptr, shape=(n,), strides=(1,), offsets=(begin,), block_shape=(BLOCK,), order=(0,))
    out = tl.make_block_ptr(out_ptr, shape=(n,), strides=(1,), offsets=(begin,), block_shape=(BLOCK,), order=(0,))
    total = tl.load(x, boundary_check=(0,)) + tl.load(y, boundary_check=(0,))
    tl.store(out, total, boundary_check=(0,))


def vector_add(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
