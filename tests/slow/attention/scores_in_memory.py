# slow: three kernels, and the matrix of scores is written and read between them
# cause: extra traffic
# blind: missed
import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(q, k, s, qh, qr, kh, kr, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(2).to(tl.int64)
    i = tl.program_id(1) * B + tl.arange(0, B)
    j = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    left = tl.load(q + head * qh + i[:, None] * qr + d[None, :], mask=i[:, None] < n, other=0.0)
    right = tl.load(k + head * kh + j[None, :] * kr + d[:, None], mask=j[None, :] < n, other=0.0)
    p = tl.dot(left, right) * scale
    if CAUSAL:
        p = tl.where(j[None, :] <= i[:, None], p, float("-inf"))
    tl.store(s + head * n * n + i[:, None] * n + j[None, :], p, mask=(i[:, None] < n) & (j[None, :] < n))


@triton.jit
def weights_kernel(s, n, W: tl.constexpr):
    row = s + tl.program_id(0).to(tl.int64) * n
    j = tl.arange(0, W)
    x = tl.load(row + j, mask=j < n, other=float("-inf"))
    x = tl.exp(x - tl.max(x, 0))
    tl.store(row + j, x / tl.sum(x, 0), mask=j < n)


@triton.jit
def values_kernel(s, v, o, vh, vr, oh, orow, n, D: tl.constexpr, B: tl.constexpr, STEP: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    acc = tl.zeros((B, D), tl.float32)
    for first in range(0, n, STEP):
        j = first + tl.arange(0, STEP)
        w = tl.load(s + head * n * n + i[:, None] * n + j[None, :], mask=(i[:, None] < n) & (j[None, :] < n), other=0.0)
        x = tl.load(v + head * vh + j[:, None] * vr + d[None, :], mask=j[:, None] < n, other=0.0)
        acc = tl.dot(w.to(tl.float16), x, acc)
    tl.store(o + head * oh + i[:, None] * orow + d[None, :], acc.to(tl.float16), mask=i[:, None] < n)


def attention(q, k, v, out, causal):
    h, n, d = q.shape
    s = torch.empty((h, n, n), device=q.device, dtype=torch.float32)
    t = triton.cdiv(n, 64)
    scores_kernel[(t, t, h)](
        q, k, s, q.stride(0), q.stride(1), k.stride(0), k.stride(1), n, d**-0.5, CAUSAL=bool(causal), D=d, B=64
    )
    weights_kernel[(h * n,)](s, n, W=triton.next_power_of_2(n), num_warps=8)
    values_kernel[(t, h)](
        s, v, out, v.stride(0), v.stride(1), out.stride(0), out.stride(1), n, D=d, B=64, STEP=64, num_stages=3
    )
