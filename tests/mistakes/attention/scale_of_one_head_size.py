# mistake: always divides by √64
# says: The scale is that of another head size
# runs: anywhere

import math

import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    q_head,
    q_row,
    k_head,
    k_row,
    v_head,
    v_row,
    out_head,
    out_row,
    length,
    scale,
    CAUSAL: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tile, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, HEAD)
    q = tl.load(q_ptr + head * q_head + i[:, None] * q_row + d[None, :], mask=i[:, None] < length, other=0.0)
    highest = tl.full((BLOCK_M,), -3.4e38, tl.float32)
    sums = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, (tile + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        j = start + n
        k = tl.load(k_ptr + head * k_head + j[None, :] * k_row + d[:, None], mask=j[None, :] < length, other=0.0)
        scores = tl.dot(q, k) * scale
        seen = j[None, :] < length
        if CAUSAL:
            seen = seen & (j[None, :] <= i[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        shrink = tl.exp2(highest - higher)
        weights = tl.exp2(scores - higher[:, None])
        sums = sums * shrink + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + head * v_head + j[:, None] * v_row + d[None, :], mask=j[:, None] < length, other=0.0)
        total = total * shrink[:, None] + tl.dot(weights.to(tl.float16), v)
        highest = higher
    out = total / sums[:, None]
    tl.store(
        out_ptr + head * out_head + i[:, None] * out_row + d[None, :], out.to(tl.float16), mask=i[:, None] < length
    )


def attention(q, k, v, out, causal):
    heads, length, size = q.shape
    grid = triton.cdiv(length, 64), heads
    attention_kernel[grid](
        q,
        k,
        v,
        out,
        q.stride(0),
        q.stride(1),
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        out.stride(0),
        out.stride(1),
        length,
        math.log2(math.e) / 8,
        CAUSAL=causal,
        HEAD=size,
        BLOCK_M=64,
        BLOCK_N=64,
    )
