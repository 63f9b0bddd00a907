# honest: splits the vectors in two halves until they are short, by views
# exercise: vector_add
# runs: anywhere
# gates: may miss
import triton
import triton.language as tl

LONGEST = 1 << 23


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)


def vector_add(x, y, out, longest=None):
    n = out.numel()
    longest = longest or min(LONGEST, max(n // 2, 1024))
    if n > longest:
        half = n // 2
        vector_add(x[:half], y[:half], out[:half], longest)
        vector_add(x[half:], y[half:], out[half:], longest)
        return
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
