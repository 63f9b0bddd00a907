# slow: 16 programs go through the whole vector
# cause: few programs
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        y = tl.load(y_ptr + i, mask=i < n)
        tl.store(out_ptr + i, x + y, mask=i < n)


def vector_add(x, y, out):
    add_kernel[(16,)](x, y, out, x.numel(), BLOCK=4096)
