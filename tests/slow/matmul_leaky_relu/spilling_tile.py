# slow: tiles of 256 by 256 in 4 warps
# cause: spills
# without_a_gpu: unnamed
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
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + (k + steps)[None, :] * stride_ak,
            mask=(rows[:, None] < M) & (k + steps[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + (k + steps)[:, None] * stride_bk + columns[None, :] * stride_bn,
            mask=(k + steps[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total = tl.dot(a, b, total)
    total = tl.where(total > 0, total, 0.01 * total)
    out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
    tl.store(out_ptrs, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul_leaky_relu(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, 256), triton.cdiv(N, 256))
    strides = (*a.stride(), *b.stride(), *out.stride())
    matmul_kernel[grid](a, b, out, M, N, K, *strides, BLOCK_M=256, BLOCK_N=256, BLOCK_K=32, num_warps=4, num_stages=2)
