# right: matmul with grouped order and wrapped rows, autotuned
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 16, "GROUP": 2}), triton.Config({"BLOCK": 32, "GROUP": 2})], key=["M"])
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    pid, across, down = tl.program_id(0), tl.cdiv(N, BLOCK), tl.cdiv(M, BLOCK)
    first = pid // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    tile_m, tile_n = first + pid % (GROUP * across) % height, pid % (GROUP * across) // height
    m = (tile_m * BLOCK + tl.arange(0, BLOCK)) % M
    n = (tile_n * BLOCK + tl.arange(0, BLOCK)) % N
    k = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :], mask=k[None, :] < K - start, other=0.0)
        b = tl.load(b_ptr + (start + k[:, None]) * N + n[None, :], mask=k[:, None] < K - start, other=0.0)
        sums = tl.dot(a, b, sums)
    m, n = tile_m * BLOCK + tl.arange(0, BLOCK), tile_n * BLOCK + tl.arange(0, BLOCK)
    tl.store(c_ptr + m[:, None] * N + n[None, :], sums, mask=(m[:, None] < M) & (n[None, :] < N))


def main():
    a, b, c = torch.randn(70, 40), torch.randn(40, 50), torch.empty(70, 50)
    kernel[lambda chosen: (triton.cdiv(70, chosen["BLOCK"]) * triton.cdiv(50, chosen["BLOCK"]),)](a, b, c, 70, 50, 40)
    return c, a @ b
