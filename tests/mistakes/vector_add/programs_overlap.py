# mistake: program_id is not multiplied by the block size
# says: Neighbouring programs overlap
# runs: anywhere

import triton
import triton.language as tl


@triton.jit
def k(a, b, c, n, BS: tl.constexpr):
    at = tl.program_id(axis=0) + tl.arange(0, BS)
    ok = at < n
    tl.store(c + at, tl.load(a + at, ok) + tl.load(b + at, ok), ok)


def vector_add(x, y, out):
    k[(triton.cdiv(len(x), 512),)](x, y, out, len(x), 512)
