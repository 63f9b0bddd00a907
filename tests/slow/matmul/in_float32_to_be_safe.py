# slow: both tiles are converted to float32 and multiplied in full float32 precision, which tensor cores cannot do
# cause: no tensor cores
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 8}, num_warps=4, num_stages=2)]


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
    pid, tiles_m, tiles_n = tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP * tiles_n) * GROUP  # of the rows of tiles in this group
    height = min(tiles_m - first, GROUP)  # the last group may be smaller
    row = first + pid % (GROUP * tiles_n) % height
    column = pid % (GROUP * tiles_n) // height

    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + steps[None, :] * stride_ak  # past the edge: any row will do
    b_ptrs = b_ptr + steps[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=steps[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=steps[:, None] < K - k, other=0.0)
        accumulator = tl.dot(a.to(tl.float32), b.to(tl.float32), accumulator, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
    tl.store(out_ptrs, accumulator.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(a, b, out):
    (M, K), N = a.shape, b.shape[1]

    def grid(chosen):
        return (triton.cdiv(M, chosen["BLOCK_M"]) * triton.cdiv(N, chosen["BLOCK_N"]),)

    matmul_kernel[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride())
