# slow: one program computes a whole row of tiles: 32 programs for 4,096 rows
# cause: few programs
import triton
import triton.language as tl


@triton.jit
def strip_kernel(A, B, C, M, N, K, a0, a1, b0, b1, c0, c1, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    """This program computes rows first … first + TM - 1 of C, from left to right."""
    first = tl.program_id(0) * TM
    for left in range(0, N, TN):
        a_block = tl.make_block_ptr(A, (M, K), (a0, a1), (first, 0), (TM, TK), (1, 0))
        b_block = tl.make_block_ptr(B, (K, N), (b0, b1), (0, left), (TK, TN), (1, 0))
        sums = tl.zeros((TM, TN), dtype=tl.float32)
        for _ in range(tl.cdiv(K, TK)):
            x = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
            y = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
            sums = tl.dot(x, y, sums)
            a_block = tl.advance(a_block, (0, TK))
            b_block = tl.advance(b_block, (TK, 0))
        c_block = tl.make_block_ptr(C, (M, N), (c0, c1), (first, left), (TM, TN), (1, 0))
        tl.store(c_block, sums.to(tl.float16), boundary_check=(0, 1))


def matmul(a, b, out):
    M, K = a.shape
    N = b.shape[1]
    strides = *a.stride(), *b.stride(), *out.stride()
    strip_kernel[(triton.cdiv(M, 128),)](a, b, out, M, N, K, *strides, TM=128, TN=128, TK=64, num_warps=8, num_stages=3)
