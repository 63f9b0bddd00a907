# slow: takes the tiles row by row, so that L2 reuses little
# cause: no grouped order
# without_a_gpu: unnamed
# blind: missed
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    som,
    son,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    pid_m = tl.program_id(0) // tl.cdiv(N, BLOCK_N)
    pid_n = tl.program_id(0) % tl.cdiv(N, BLOCK_N)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(
            a_ptr + rows[:, None] * sam + (k + steps)[None, :] * sak,
            mask=(rows[:, None] < M) & (k + steps[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + (k + steps)[:, None] * sbk + columns[None, :] * sbn,
            mask=(k + steps[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        accumulator = tl.dot(a, b, accumulator)
    tl.store(
        out_ptr + rows[:, None] * som + columns[None, :] * son,
        accumulator.to(tl.float16),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


def matmul(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
    matmul_kernel[grid](
        a,
        b,
        out,
        M,
        N,
        K,
        *a.stride(),
        *b.stride(),
        *out.stride(),
        BLOCK_M=128,
        BLOCK_N=128,
        BLOCK_K=64,
        num_warps=8,
        num_stages=3,
    )
