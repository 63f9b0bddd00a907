# slow: every configuration of the autotuner has one stage, so each step waits for its loads
# cause: no pipelining
import itertools

import triton
import triton.language as tl


def all_configs():
    for bm, bn in itertools.product((64, 128), (128, 256)):
        yield triton.Config(
            {"BM": bm, "BN": bn, "BK": 32, "G": 8}, num_warps=8 if bm * bn > 128 * 128 else 4, num_stages=1
        )


@triton.autotune(list(all_configs()), key=["M", "N", "K"])
@triton.jit
def gemm_leaky(
    a, b, c, M, N, K, a_m, a_k, b_k, b_n, c_m, c_n,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    grid_m = tl.cdiv(M, BM)
    grid_n = tl.cdiv(N, BN)
    i, j = tl.swizzle2d(tl.program_id(0) // grid_n, tl.program_id(0) % grid_n, grid_m, grid_n, G)
    rm = i * BM + tl.arange(0, BM)
    rn = j * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + (rm % M)[:, None] * a_m + rk[None, :] * a_k
    pb = b + rk[:, None] * b_k + (rn % N)[None, :] * b_n
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for left in range(K, 0, -BK):
        acc = tl.dot(
            tl.load(pa, mask=rk[None, :] < left, other=0.0), tl.load(pb, mask=rk[:, None] < left, other=0.0), acc
        )
        pa += BK * a_k
        pb += BK * b_k
    acc = tl.where(acc >= 0, acc, acc * 0.01)
    tl.store(c + rm[:, None] * c_m + rn[None, :] * c_n, acc.to(c.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))  # fmt: skip


def matmul_leaky_relu(a, b, out):
    (M, K), (_, N) = a.shape, b.shape
    gemm_leaky[lambda cfg: (triton.cdiv(M, cfg["BM"]) * triton.cdiv(N, cfg["BN"]),)](
        a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride()
    )
