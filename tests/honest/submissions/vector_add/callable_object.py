# honest: the entry point is an object of a class with __call__
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


class VectorAdd:
    """Adds; remembers the grid of each length that it has seen."""

    __slots__ = ("block", "grids", "kernel")

    def __init__(self, kernel, block=1024):
        self.kernel, self.block = kernel, block
        self.grids = {}

    def grid(self, n):
        return self.grids.setdefault(n, (triton.cdiv(n, self.block), 1, 1))

    def __call__(self, x, y, out):
        n = out.numel()
        self.kernel[self.grid(n)](x, y, out, n, BLOCK=self.block)

    def __repr__(self):
        return f"VectorAdd(block={self.block})"


vector_add = VectorAdd(add_kernel)
