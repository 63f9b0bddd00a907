# mistake: the maximum is taken over the rows of the tile
# says: Does `tl.max` reduce the right axis?
# runs: simulator

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
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    part = tl.arange(0, HEAD)
    q = tl.load(q_ptr + head * q_head + rows[:, None] * q_row + part[None, :], mask=rows[:, None] < length, other=0.0)
    row_max = tl.full((BLOCK_M,), -1e38, dtype=tl.float32)
    sums = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(
            k_ptr + head * k_head + keys[None, :] * k_row + part[:, None], mask=keys[None, :] < length, other=0.0
        )
        v = tl.load(
            v_ptr + head * v_head + keys[:, None] * v_row + part[None, :], mask=keys[:, None] < length, other=0.0
        )
        scores = tl.dot(q, k) * scale
        scores = tl.where(keys[None, :] < length, scores, -float("inf"))
        if CAUSAL:
            scores = tl.where(keys[None, :] <= rows[:, None], scores, -float("inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_max[:, None])
        factor = tl.exp(row_max - new_max)
        sums = sums * factor + tl.sum(weights, axis=1)
        total = total * factor[:, None] + tl.dot(weights.to(tl.float16), v)
        row_max = new_max
    tl.store(
        out_ptr + head * out_head + rows[:, None] * out_row + part[None, :],
        (total / sums[:, None]).to(tl.float16),
        mask=rows[:, None] < length,
    )


def attention(q, k, v, out, causal):
    heads, length, head = q.shape
    strides = [stride for x in (q, k, v, out) for stride in x.stride()[:2]]
    grid = (triton.cdiv(length, 64), heads)
    attention_kernel[grid](
        q,
        k,
        v,
        out,
        *strides,
        length,
        1 / math.sqrt(head),
        CAUSAL=causal,
        HEAD=head,
        BLOCK_M=64,
        BLOCK_N=32,
    )
