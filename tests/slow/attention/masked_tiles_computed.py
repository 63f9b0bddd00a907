# slow: with the causal mask, the tiles above the diagonal are computed as well, with every score masked
# cause: idle elements
# blind: missed
import math

import triton
import triton.language as tl


@triton.jit
def attend(
    q, k, v, o, q0, q1, k0, k1, v0, v1, o0, o1, n, qk_scale,
    HEAD: tl.constexpr, CAUSAL: tl.constexpr, ROWS: tl.constexpr = 128, KEYS: tl.constexpr = 64,
):  # fmt: skip
    batch = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, KEYS)
    e = tl.arange(0, HEAD)
    q_tile = tl.load(q + batch * q0 + r[:, None] * q1 + e[None, :], mask=r[:, None] < n, other=0.0)
    m = tl.full([ROWS], -3.4e38, tl.float32)
    norm = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, HEAD], tl.float32)
    for at in range(0, n, KEYS):
        valid = at + c < n
        k_tile = tl.load(k + batch * k0 + e[:, None] + (at + c)[None, :] * k1, mask=valid[None, :], other=0.0)
        v_tile = tl.load(v + batch * v0 + (at + c)[:, None] * v1 + e[None, :], mask=valid[:, None], other=0.0)
        visible = valid[None, :]
        if CAUSAL:
            visible = visible & (r[:, None] >= (at + c)[None, :])
        s = tl.where(visible, tl.dot(q_tile, k_tile) * qk_scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        norm = norm * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.float16), v_tile, acc * alpha[:, None])
        m = m_new
    tl.store(o + batch * o0 + r[:, None] * o1 + e[None, :], (acc / norm[:, None]).to(tl.float16), mask=r[:, None] < n)


def attention(q, k, v, out, causal):
    batches, n, head = q.shape
    grid = (triton.cdiv(n, 128), batches)
    attend[grid](
        q, k, v, out,
        q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1), out.stride(0), out.stride(1),
        n, 1.44269504 / math.sqrt(head), HEAD=head, CAUSAL=causal, num_warps=8, num_stages=3,
    )  # fmt: skip
