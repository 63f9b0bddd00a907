# slow: one program computes all rows of a head, so 16 or 32 programs keep that many of 132 SMs busy
# cause: few programs
import math

import triton
import triton.language as tl


@triton.jit
def add_tile(products, scale, v, row_max, sums, total):
    new_max = tl.maximum(row_max, tl.max(products, axis=1) * scale)
    weights = tl.exp2(products * scale - new_max[:, None])  # one instruction multiplies and subtracts
    factor = tl.exp2(row_max - new_max)
    sums = sums * factor + tl.sum(weights, axis=1)
    return new_max, sums, tl.dot(weights.to(tl.float16), v, total * factor[:, None])


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
    head = tl.program_id(0).to(tl.int64)
    keys, part = tl.arange(0, BLOCK_N), tl.arange(0, HEAD)
    k_at = k_ptr + head * k_head + part[:, None] + keys[None, :] * k_row
    v_at = v_ptr + head * v_head + keys[:, None] * v_row + part[None, :]
    for first in range(0, length, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        q_at = q_ptr + head * q_head + rows[:, None] * q_row + part[None, :]
        q = tl.load(q_at, mask=rows[:, None] < length, other=0.0)
        row_max = tl.full((BLOCK_M,), -3.4e38, dtype=tl.float32)
        sums = tl.zeros((BLOCK_M,), dtype=tl.float32)
        total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
        whole = (first if CAUSAL else length) // BLOCK_N * BLOCK_N
        end = min(first + BLOCK_M, length) if CAUSAL else length
        for start in range(0, whole, BLOCK_N):
            k = tl.load(k_at + start * k_row)
            v = tl.load(v_at + start * v_row)
            row_max, sums, total = add_tile(tl.dot(q, k), scale, v, row_max, sums, total)
        for start in range(whole, end, BLOCK_N):
            inside = start + keys < length
            k = tl.load(k_at + start * k_row, mask=inside[None, :], other=0.0)
            v = tl.load(v_at + start * v_row, mask=inside[:, None], other=0.0)
            seen = inside[None, :] & (start + keys[None, :] <= rows[:, None]) if CAUSAL else inside[None, :]
            products = tl.where(seen, tl.dot(q, k), -float("inf"))
            row_max, sums, total = add_tile(products, scale, v, row_max, sums, total)
        out_at = out_ptr + head * out_head + rows[:, None] * out_row + part[None, :]
        tl.store(out_at, (total / sums[:, None]).to(tl.float16), mask=rows[:, None] < length)


def attention(q, k, v, out, causal):
    heads, length, head = q.shape
    strides = [stride for x in (q, k, v, out) for stride in x.stride()[:2]]
    scale = math.log2(math.e) / math.sqrt(head)
    grid = (heads,)
    attention_kernel[grid](
        q,
        k,
        v,
        out,
        *strides,
        length,
        scale,
        CAUSAL=causal,
        HEAD=head,
        BLOCK_M=128,
        BLOCK_N=64,
        num_warps=8,
        num_stages=3,
    )
