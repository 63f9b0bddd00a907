# honest: line ends as on Windows, and a form feed
# exercise: vector_add
# runs: anywhere
# gates: passes
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n,
               BLOCK: tl.constexpr):
    """Adds.

    A docstring of several lines.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)
    y = tl.load(y_ptr + at, mask=mask)

    tl.store(out_ptr + at, x + y, mask=mask)


def vector_add(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](
        x, y, out, n,
        BLOCK=1024,
    )
