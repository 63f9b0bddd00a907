# right: the steps along K over several programs, added by atomics in float32
# runs: anywhere
import torch
import triton
import triton.language as tl


@triton.jit
def splitk_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    scm,
    scn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    pid = tl.program_id(0)
    pid_k = tl.program_id(1)
    grid_n = tl.cdiv(N, BN)
    pid_m = pid // grid_n
    pid_n = pid % grid_n
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, 1), 1)
    rbn = rn % N
    rk = pid_k * BK + tl.arange(0, BK)
    A = a_ptr + (ram[:, None] * sam + rk[None, :] * sak)
    B = b_ptr + (rk[:, None] * sbk + rbn[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT_K)):
        k_remaining = K - k * (BK * SPLIT_K)
        a = tl.load(A, mask=rk[None, :] < k_remaining, other=0.0)
        b = tl.load(B, mask=rk[:, None] < k_remaining, other=0.0)
        acc += tl.dot(a, b, out_dtype=tl.float32)
        A += BK * SPLIT_K * sak
        B += BK * SPLIT_K * sbk
    C = c_ptr + (rm[:, None] * scm + rn[None, :] * scn)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(C, acc, mask=mask)
    else:
        tl.atomic_add(C, acc, mask=mask, sem="relaxed")


def matmul(a, b, out):
    M, K = a.shape
    N = b.shape[1]
    total = torch.zeros((M, N), device=a.device, dtype=torch.float32)
    grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64), 4)
    splitk_kernel[grid](
        a,
        b,
        total,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        total.stride(0),
        total.stride(1),
        BM=64,
        BN=64,
        BK=32,
        SPLIT_K=4,
    )
    out.copy_(total)
