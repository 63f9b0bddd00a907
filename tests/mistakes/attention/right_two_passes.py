# right: the logarithms of the sums in a first kernel, the output in a second
# runs: anywhere
import math

import torch
import triton
import triton.language as tl


@triton.jit
def scores(q, k, kh, kr, h, rows, n0, L, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    cols = n0 + tl.arange(0, BN)
    d = tl.arange(0, D)
    t = tl.load(k + h * kh + cols[None, :] * kr + d[:, None], mask=cols[None, :] < L, other=0.0)
    s = tl.dot(q, t, out_dtype=tl.float32) * scale
    ok = cols[None, :] < L
    if CAUSAL:
        ok &= cols[None, :] <= rows[:, None]
    return tl.where(ok, s, -1e30)


@triton.jit
def stats(
    q_ptr,
    k,
    lse_ptr,
    qh,
    qr,
    kh,
    kr,
    L,
    scale,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    h = tl.program_id(1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + h * qh + rows[:, None] * qr + d[None, :], mask=rows[:, None] < L, other=0.0)
    top = tl.full((BM,), -1e30, tl.float32)
    den = tl.zeros((BM,), tl.float32)
    for n0 in range(0, L, BN):
        s = scores(q, k, kh, kr, h, rows, n0, L, scale, CAUSAL, D, BN)
        new = tl.maximum(top, tl.max(s, 1))
        den = den * tl.exp(top - new) + tl.sum(tl.where(s > -1e29, tl.exp(s - new[:, None]), 0.0), 1)
        top = new
    tl.store(lse_ptr + h * L + rows, top + tl.log(den), mask=rows < L)


@triton.jit
def output(
    q_ptr,
    k,
    v,
    o_ptr,
    lse_ptr,
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
    h = tl.program_id(1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + h * qh + rows[:, None] * qr + d[None, :], mask=rows[:, None] < L, other=0.0)
    lse = tl.load(lse_ptr + h * L + rows, mask=rows < L, other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, L, BN):
        s = scores(q, k, kh, kr, h, rows, n0, L, scale, CAUSAL, D, BN)
        w = tl.exp(s - lse[:, None])
        cols = n0 + tl.arange(0, BN)
        t = tl.load(v + h * vh + cols[:, None] * vr + d[None, :], mask=cols[:, None] < L, other=0.0)
        acc = tl.dot(w.to(t.dtype), t, acc)
    tl.store(o_ptr + h * oh + rows[:, None] * orow + d[None, :], acc.to(tl.float16), mask=rows[:, None] < L)


def attention(q, k, v, out, causal):
    H, L, D = q.shape
    lse = torch.empty((H, L), device=q.device, dtype=torch.float32)
    grid = (triton.cdiv(L, 64), H)
    scale = 1.0 / math.sqrt(D)
    stats[grid](q, k, lse, *q.stride()[:2], *k.stride()[:2], L, scale, causal, D, 64, 64)
    output[grid](
        q,
        k,
        v,
        out,
        lse,
        *q.stride()[:2],
        *k.stride()[:2],
        *v.stride()[:2],
        *out.stride()[:2],
        L,
        scale,
        causal,
        D,
        64,
        64,
    )
