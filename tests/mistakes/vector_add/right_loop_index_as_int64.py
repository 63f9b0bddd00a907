# right: a grid-stride loop whose index is converted to int64, and a mask of two conditions with `and`
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for k in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = k.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        mask = (i >= 0) and (i < n)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def vector_add(x, y, out):
    add_kernel[(1024,)](x, y, out, x.numel(), BLOCK=1024)
