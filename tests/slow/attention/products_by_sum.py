# slow: a program of 16 warps has 16 queries and takes 32 keys per step; Triton compiles its sums of products to dots
# cause: small tiles
# blind: missed
import math

import triton
import triton.language as tl


@triton.jit
def times(left, right):
    """left (M, K) times right (K, N)."""
    return tl.sum(left[:, :, None] * right[None, :, :], axis=1)


@triton.jit
def attention_kernel(
    q, k, v, out, qh, qn, kh, kn, vh, vn, oh, on, length, scale,
    causal: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * M + tl.arange(0, M)
    c = tl.arange(0, D)
    queries = tl.load(q + head * qh + i[:, None] * qn + c[None, :], mask=i[:, None] < length, other=0.0).to(tl.float32)
    best = tl.full((M,), -3.0e38, tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    end = min(length, tl.program_id(1) * M + M) if causal else length
    for start in range(0, end, N):
        j = start + tl.arange(0, N)
        here = j < length
        keys = tl.load(k + head * kh + j[None, :] * kn + c[:, None], mask=here[None, :], other=0.0).to(tl.float32)
        values = tl.load(v + head * vh + j[:, None] * vn + c[None, :], mask=here[:, None], other=0.0).to(tl.float32)
        seen = here[None, :]
        if causal:
            seen = seen & (j[None, :] <= i[:, None])
        scores = tl.where(seen, times(queries * scale, keys), -float("inf"))
        better = tl.maximum(best, tl.max(scores, axis=1))
        weights = tl.exp(scores - better[:, None])
        fade = tl.exp(best - better)
        acc = acc * fade[:, None] + times(weights, values)
        total = total * fade + tl.sum(weights, axis=1)
        best = better
    rows = out + head * oh + i[:, None] * on + c[None, :]
    tl.store(rows, (acc / total[:, None]).to(tl.float16), mask=i[:, None] < length)


def attention(q, k, v, out, causal):
    heads, length, d = q.shape
    strides = [x.stride(axis) for x in (q, k, v, out) for axis in (0, 1)]
    grid = heads, triton.cdiv(length, 16)
    attention_kernel[grid](
        q, k, v, out, *strides, length, 1 / math.sqrt(d), causal=causal, D=d, M=16, N=32, num_warps=16
    )
