# slow: a program has 16 queries and takes 32 keys per step
# cause: small tiles
# blind: missed
import triton
import triton.language as tl


@triton.jit
def online_step(acc, peak, norm, scores, values):
    higher = tl.maximum(peak, tl.max(scores, 1))
    keep = tl.exp(peak - higher)
    p = tl.exp(scores - higher[:, None])
    acc = acc * keep[:, None]
    acc = tl.dot(p.to(values.dtype), values, acc)
    return acc, higher, norm * keep + tl.sum(p, 1)


@triton.jit
def flash(
    Q, K, V, Y, q_h, q_n, k_h, k_n, v_h, v_n, o_h, o_n, N, scale,
    IS_CAUSAL: tl.constexpr, DIM: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    h = tl.program_id(1).to(tl.int64)
    q_index = tl.program_id(0) * BQ + tl.arange(0, BQ)
    dim = tl.arange(0, DIM)
    query = tl.load(Q + h * q_h + q_index[:, None] * q_n + dim[None, :], mask=q_index[:, None] < N, other=0.0)
    peak = tl.full((BQ,), -1e38, tl.float32)
    norm = tl.full((BQ,), 0.0, tl.float32)
    acc = tl.zeros((BQ, DIM), tl.float32)
    last = N
    if IS_CAUSAL:
        last = min(N, tl.program_id(0) * BQ + BQ)
    for begin in range(0, last, BK):
        k_index = begin + tl.arange(0, BK)
        exists = k_index < N
        key = tl.load(K + h * k_h + k_index[None, :] * k_n + dim[:, None], mask=exists[None, :], other=0.0)
        scores = tl.dot(query, key) * scale
        scores = tl.where(exists[None, :], scores, float("-inf"))
        if IS_CAUSAL:
            scores = tl.where(k_index[None, :] <= q_index[:, None], scores, float("-inf"))
        value = tl.load(V + h * v_h + k_index[:, None] * v_n + dim[None, :], mask=exists[:, None], other=0.0)
        acc, peak, norm = online_step(acc, peak, norm, scores, value)
    result = acc / norm[:, None]
    tl.store(Y + h * o_h + q_index[:, None] * o_n + dim[None, :], result.to(tl.float16), mask=q_index[:, None] < N)


def attention(q, k, v, out, causal):
    H, N, DIM = q.shape
    flash[(triton.cdiv(N, 16), H)](
        q, k, v, out, q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        out.stride(0), out.stride(1), N, DIM**-0.5, IS_CAUSAL=causal, DIM=DIM, BQ=16, BK=32, num_warps=1, num_stages=3,
    )  # fmt: skip
