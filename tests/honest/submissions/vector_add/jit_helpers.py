# honest: the kernel is made of small @triton.jit functions, one of which returns a tuple
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def my_offsets(n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return offsets, offsets < n


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def fetch(pointer, offsets, mask):
    return tl.load(pointer + offsets, mask=mask)


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr = 1024):
    """Loads, adds, stores."""
    offsets, mask = my_offsets(n, BLOCK)
    result = plus(fetch(x_ptr, offsets, mask), fetch(y_ptr, offsets, mask))
    tl.store(out_ptr + offsets, result, mask=mask)


def vector_add(x, y, out):
    n = x.shape[0]
    add[triton.cdiv(n, 1024),](x, y, out, n)
