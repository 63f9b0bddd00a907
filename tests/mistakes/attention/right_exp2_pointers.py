# right: exp2 with a scale of log2(e), pointers that advance, and the unmasked tiles in a loop of their own
# runs: anywhere
import triton
import triton.language as tl


@triton.jit
def inner(q, k_at, v_at, highest, sums, total, rows, low, high, length, k_row, v_row, scale, MASKED: tl.constexpr,
          CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    column = tl.arange(0, BLOCK_N)
    k_at += low * k_row
    v_at += low * v_row
    for start in range(low, high, BLOCK_N):
        if MASKED:
            inside = start + column < length
            k = tl.load(k_at, mask=inside[:, None], other=0.0)
            v = tl.load(v_at, mask=inside[:, None], other=0.0)
        else:
            k, v = tl.load(k_at), tl.load(v_at)
        scores = tl.dot(q, tl.trans(k)) * scale
        if MASKED:
            scores += tl.where(inside, 0.0, -float("inf"))[None, :]
            if CAUSAL:
                scores = tl.where(rows[:, None] >= start + column[None, :], scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - higher[:, None])
        alpha = tl.exp2(highest - higher)
        sums = sums * alpha + tl.sum(p, 1)
        total = total * alpha[:, None]
        total = tl.dot(p.to(v.dtype), v, total)
        highest = higher
        k_at += BLOCK_N * k_row
        v_at += BLOCK_N * v_row
    return highest, sums, total


@triton.jit
def forward(q_ptr, k_ptr, v_ptr, out_ptr, q_head, q_row, k_head, k_row, v_head, v_row, out_head, out_row, length, scale,
            CAUSAL: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * BLOCK_M
    rows, part, column = first + tl.arange(0, BLOCK_M), tl.arange(0, HEAD), tl.arange(0, BLOCK_N)
    within = rows[:, None] < length
    q = tl.load(q_ptr + head * q_head + rows[:, None] * q_row + part[None, :], mask=within, other=0.0)
    k_at = k_ptr + head * k_head + column[:, None] * k_row + part[None, :]
    v_at = v_ptr + head * v_head + column[:, None] * v_row + part[None, :]
    highest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    sums = tl.full((BLOCK_M,), 0.0, dtype=tl.float32)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    if CAUSAL:
        whole, end = first // BLOCK_N * BLOCK_N, min(first + BLOCK_M, length)
    else:
        whole, end = length // BLOCK_N * BLOCK_N, length
    highest, sums, total = inner(q, k_at, v_at, highest, sums, total, rows, 0, whole, length, k_row, v_row, scale,
                                 False, CAUSAL, BLOCK_N)  # fmt: skip
    highest, sums, total = inner(q, k_at, v_at, highest, sums, total, rows, whole, end, length, k_row, v_row, scale,
                                 True, CAUSAL, BLOCK_N)  # fmt: skip
    out = (total * (1.0 / sums)[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + head * out_head + rows[:, None] * out_row + part[None, :], out, mask=within)


def attention(q, k, v, out, causal):
    heads, length, head = q.shape
    strides = [stride for x in (q, k, v, out) for stride in x.stride()[:2]]
    block_m = 128 if length > 512 else 64
    forward[(triton.cdiv(length, block_m), heads)](
        q, k, v, out, *strides, length, 1.4426950408889634 / head**0.5, CAUSAL=causal, HEAD=head, BLOCK_M=block_m,
        BLOCK_N=32, num_warps=4, num_stages=3,
    )  # fmt: skip
