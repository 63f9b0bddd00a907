# slow: one query per program: both products are tl.sum, not tl.dot
# cause: no tensor cores
import math

import triton
import triton.language as tl


@triton.jit
def one_query(
    q, k, v, out, qh, qn, kh, kn, vh, vn, oh, on, length, scale,
    causal: tl.constexpr, d: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, d)
    query = tl.load(q + head * qh + i * qn + c).to(tl.float32) * scale
    m = -3.0e38
    total = 0.0
    acc = tl.zeros((d,), tl.float32)
    end = length
    if causal:
        end = i + 1
    for start in range(0, end, KEYS):
        j = start + tl.arange(0, KEYS)
        there = j < end
        kk = tl.load(k + head * kh + j[:, None] * kn + c[None, :], mask=there[:, None], other=0.0).to(tl.float32)
        s = tl.sum(kk * query[None, :], axis=1)
        s = tl.where(there, s, -float("inf"))
        m_next = tl.maximum(m, tl.max(s, axis=0))
        w = tl.exp(s - m_next)
        f = tl.exp(m - m_next)
        vv = tl.load(v + head * vh + j[:, None] * vn + c[None, :], mask=there[:, None], other=0.0).to(tl.float32)
        acc = acc * f + tl.sum(w[:, None] * vv, axis=0)
        total = total * f + tl.sum(w, axis=0)
        m = m_next
    tl.store(out + head * oh + i * on + c, (acc / total).to(tl.float16))


def attention(q, k, v, out, causal):
    heads, length, d = q.shape
    s = [t.stride(axis) for t in (q, k, v, out) for axis in (0, 1)]
    one_query[(length, heads)](q, k, v, out, *s, length, 1 / math.sqrt(d), causal=causal, d=d, KEYS=64, num_warps=4)
