# slow: one element per program
# cause: small programs
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr):
    i = tl.program_id(0)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))


def vector_add(x, y, out):
    add_kernel[(x.numel(),)](x, y, out)
