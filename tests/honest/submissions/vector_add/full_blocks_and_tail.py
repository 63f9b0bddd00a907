# honest: two kernels: full blocks without a mask, then the tail with one
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def whole_blocks(a, b, c, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(c + i, tl.load(a + i) + tl.load(b + i))


@triton.jit
def tail(a, b, c, first, n, SIZE: tl.constexpr):
    i = first + tl.arange(0, SIZE)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


def vector_add(x, y, out):
    n = len(out)
    size = 1024
    whole, rest = divmod(n, size)
    if whole:
        whole_blocks[(whole,)](x, y, out, SIZE=size)
    if rest:
        tail[(1,)](x, y, out, whole * size, n, SIZE=triton.next_power_of_2(rest))
