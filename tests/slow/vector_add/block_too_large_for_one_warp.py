# slow: a block of 16,384 elements for one warp, 512 elements of each vector per thread
# cause: spills
import triton
import triton.language as tl

CHUNK = 16_384


@triton.jit
def add_chunk(left, right, result, length, CHUNK: tl.constexpr):
    where = tl.program_id(axis=0) * CHUNK + tl.arange(0, CHUNK)
    valid = where < length
    lhs = tl.load(left + where, mask=valid, other=0.0)
    rhs = tl.load(right + where, mask=valid, other=0.0)
    tl.store(result + where, lhs + rhs, mask=valid)


def vector_add(x, y, out):
    length = out.shape[0]
    add_chunk[(triton.cdiv(length, CHUNK),)](x, y, out, length, CHUNK=CHUNK, num_warps=1)
