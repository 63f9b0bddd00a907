# slow: 32 programs add their shares of each tile to a float32 matrix with atomics
# cause: atomics
# blind: missed
import torch
import triton
import triton.language as tl

SPLIT_K = 32


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    share = tl.program_id(1)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    group = pid // (GROUP * nn)
    size = min(nm - group * GROUP, GROUP)
    pm = group * GROUP + (pid % (GROUP * nn)) % size
    pn = (pid % (GROUP * nn)) // size
    offs_m = pm * BM + tl.arange(0, BM)
    offs_n = pn * BN + tl.arange(0, BN)
    offs_k = share * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK * SPLIT):
        now = k + offs_k
        a_tile = tl.load(a_ptr + (offs_m % M)[:, None] * sam + now[None, :] * sak, mask=now[None, :] < K, other=0.0)
        b_tile = tl.load(b_ptr + now[:, None] * sbk + (offs_n % N)[None, :] * sbn, mask=now[:, None] < K, other=0.0)
        acc += tl.dot(a_tile, b_tile)
    inside = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    tl.atomic_add(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc, mask=inside)


def matmul(a, b, out):
    M, K = a.shape
    _, N = b.shape
    c = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128), SPLIT_K)
    split_k_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(),
        BM=128, BN=128, BK=64, SPLIT=SPLIT_K, GROUP=8, num_warps=8, num_stages=3,
    )  # fmt: skip
    out.copy_(c)
