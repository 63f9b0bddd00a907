# mistake: the kernel stores to a tensor that was made without a device
# says: A GPU kernel got a tensor that is in CPU memory.
# runs: anywhere
import math

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, q_head, q_row, k_head, k_row, v_head, v_row, out_head, out_row, length, scale,
    CAUSAL: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    rows = first + tl.arange(0, BLOCK_M)
    part = tl.arange(0, HEAD)
    q = tl.load(q_ptr + head * q_head + rows[:, None] * q_row + part[None, :], mask=rows[:, None] < length, other=0.0)
    row_max = tl.full((BLOCK_M,), -3.4e38, dtype=tl.float32)
    sums = tl.zeros((BLOCK_M,), dtype=tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    end = min(first + BLOCK_M, length) if CAUSAL else length
    for start in range(0, end, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        inside = key < length
        k = tl.load(k_ptr + head * k_head + part[:, None] + key[None, :] * k_row, mask=inside[None, :], other=0.0)
        v = tl.load(v_ptr + head * v_head + key[:, None] * v_row + part[None, :], mask=inside[:, None], other=0.0)
        scores = tl.dot(q, k) * scale
        seen = inside[None, :]
        if CAUSAL:
            seen = seen & (key[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_max[:, None])
        factor = tl.exp(row_max - new_max)
        sums = sums * factor + tl.sum(weights, axis=1)
        total = tl.dot(weights.to(tl.float16), v, total * factor[:, None])
        row_max = new_max
    out = (total / sums[:, None]).to(tl.float16)
    tl.store(out_ptr + head * out_head + rows[:, None] * out_row + part[None, :], out, mask=rows[:, None] < length)


def attention(q, k, v, out, causal):
    heads, length, head = q.shape
    result = torch.empty(q.shape, dtype=q.dtype)
    strides = [stride for x in (q, k, v, result) for stride in x.stride()[:2]]
    grid = (triton.cdiv(length, 64), heads)
    attention_kernel[grid](
        q, k, v, result, *strides, length, 1 / math.sqrt(head), CAUSAL=causal, HEAD=head, BLOCK_M=64, BLOCK_N=64
    )
    out.copy_(result)
