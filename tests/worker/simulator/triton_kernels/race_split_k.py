# says: A race: program (0, 0) stores to `out[0, 0]` and program (0, 1) loads it
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, K, N: tl.constexpr, BLOCK_K: tl.constexpr):
    row, k = tl.arange(0, N), tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    a = tl.load(a_ptr + row[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + row[None, :])
    at = out_ptr + row[:, None] * N + row[None, :]
    tl.store(at, tl.load(at) + tl.dot(a, b))


def main():
    a, b, out = torch.randn(16, 64), torch.randn(64, 16), torch.zeros(16, 16)
    kernel[(1, 4)](a, b, out, 64, N=16, BLOCK_K=16)
    return out, a @ b
