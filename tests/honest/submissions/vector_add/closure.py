# honest: a closure made by a factory, bound by a lambda, in a module with __all__
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl

__all__ = ["vector_add"]


def make(block):
    @triton.jit
    def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = at < n
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)

    def run(x, y, out):
        n = x.numel()
        add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)

    return run


run = make(block=1024)
vector_add = lambda x, y, out: run(x, y, out)
