# mistake: the pointer of v lacks the head
# says: Every head read head 0, of all inputs or of one
# runs: anywhere
import math

import triton
import triton.language as tl


@triton.jit
def kernel(
    q,
    k,
    v,
    o,
    qh,
    qr,
    kh,
    kr,
    vh,
    vr,
    oh,
    orow,
    L,
    scale,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    h = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + h * qh + rows[:, None] * qr + d[None, :], mask=rows[:, None] < L, other=0.0)
    top = tl.full((BM,), -3.4e38, tl.float32)
    den = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, L, BN):
        cols = n0 + tl.arange(0, BN)
        kk = tl.load(k + h * kh + cols[None, :] * kr + d[:, None], mask=cols[None, :] < L, other=0.0)
        vv = tl.load(v + cols[:, None] * vr + d[None, :], mask=cols[:, None] < L, other=0.0)
        s = tl.dot(x, kk) * scale
        ok = cols[None, :] < L
        if CAUSAL:
            ok = ok & (cols[None, :] <= rows[:, None])
        s = tl.where(ok, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        w = tl.exp(s - new[:, None])
        a = tl.exp(top - new)
        den = den * a + tl.sum(w, 1)
        acc = acc * a[:, None]
        acc = tl.dot(w.to(tl.float16), vv, acc)
        top = new
    tl.store(
        o + h * oh + rows[:, None] * orow + d[None, :], (acc / den[:, None]).to(tl.float16), mask=rows[:, None] < L
    )


def attention(q, k, v, out, causal):
    H, L, D = q.shape
    s = [t for x in (q, k, v, out) for t in x.stride()[:2]]
    kernel[(triton.cdiv(L, 64), H)](q, k, v, out, *s, L, 1 / math.sqrt(D), causal, D, 64, 64)
