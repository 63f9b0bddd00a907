# slow: the kernel is defined in the function, so Triton looks for it and loads it again in every call
# cause: built in each call
import triton
import triton.language as tl


def matmul_leaky_relu(a, b, out):
    @triton.jit
    def kernel(
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
        first = pid // (GROUP * tiles_n) * GROUP
        height = min(tiles_m - first, GROUP)
        row = first + pid % (GROUP * tiles_n) % height
        column = pid % (GROUP * tiles_n) // height

        rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
        steps = tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + steps[None, :] * stride_ak
        b_ptrs = b_ptr + steps[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            left = tl.load(a_ptrs, mask=steps[None, :] < K - k, other=0.0)
            right = tl.load(b_ptrs, mask=steps[:, None] < K - k, other=0.0)
            accumulator = tl.dot(left, right, accumulator)
            a_ptrs += BLOCK_K * stride_ak
            b_ptrs += BLOCK_K * stride_bk
        accumulator = tl.where(accumulator > 0, accumulator, 0.01 * accumulator)
        out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
        tl.store(out_ptrs, accumulator.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))

    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 256),)
    kernel[grid](
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
        BLOCK_N=256,
        BLOCK_K=64,
        GROUP=8,
        num_warps=8,
        num_stages=3,
    )
