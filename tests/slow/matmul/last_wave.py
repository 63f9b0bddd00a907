# slow: 200 persistent programs: on a GPU with 132 SMs, 68 run only after the first 132
# cause: last wave
import triton
import triton.language as tl

PROGRAMS = 200


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
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        first = tile // (GROUP * tiles_n) * GROUP
        height = min(tiles_m - first, GROUP)
        inside = tile % (GROUP * tiles_n)
        rows = (first + inside % height) * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = inside // height * BLOCK_N + tl.arange(0, BLOCK_N)
        a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + steps[None, :] * stride_ak
        b_ptrs = b_ptr + steps[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_ptrs, mask=steps[None, :] < K - k, other=0.0)
            b = tl.load(b_ptrs, mask=steps[:, None] < K - k, other=0.0)
            total = tl.dot(a, b, total)
            a_ptrs += BLOCK_K * stride_ak
            b_ptrs += BLOCK_K * stride_bk
        out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
        tl.store(out_ptrs, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    strides = (*a.stride(), *b.stride(), *out.stride())
    matmul_kernel[(PROGRAMS,)](
        a, b, out, M, N, K, *strides, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP=8, num_warps=8, num_stages=3
    )
