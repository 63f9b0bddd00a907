# mistake: the accumulator that is handed to tl.dot is float16
# says: dtype=tl.float32)
# runs: simulator

import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 8}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 8}, num_warps=8, num_stages=3),
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8}, num_warps=8, num_stages=4),
]


def worth_timing(configs, sizes, **constants):
    return configs if sizes["M"] * sizes["N"] >= 1 << 20 else configs[:1]  # a small product takes the first


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"], prune_configs_by={"early_config_prune": worth_timing})
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP * tiles_n) * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    inside = pid % (GROUP * tiles_n)
    tile_m = first + inside % height
    tile_n = inside // height
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + (cols % N)[None, :] * stride_bn
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float16)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=k[None, :] < K - start, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - start, other=0.0)
        sums = tl.dot(a, b, sums)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :] * stride_on, sums.to(tl.float16), mask=mask)


def matmul(a, b, out):
    M, K = a.shape
    N = b.shape[1]

    def grid(c):
        return (triton.cdiv(M, c["BLOCK_M"]) * triton.cdiv(N, c["BLOCK_N"]),)

    matmul_kernel[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride())
