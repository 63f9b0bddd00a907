# mistake: a persistent program leaves out its last tile
# says: Whole tiles of `out` were never written: some program must compute each tile.
# runs: anywhere
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def described(a, b, out, M, N, K, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    tiles_n = tl.cdiv(N, BLOCK)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK) * tiles_n - 1, PROGRAMS):
        row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            acc += tl.dot(a.load([row, k]), b.load([k, column]))
        out.store([row, column], acc.to(tl.float16))


@triton.jit
def pointers(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak,
            mask=(rows[:, None] < M) & (ks[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn,
            mask=(ks[:, None] < K) & (cols[None, :] < N),
            other=0.0,
        )
        acc += tl.dot(a, b)
    out_ptrs = out_ptr + rows[:, None] * stride_om + cols[None, :] * stride_on
    tl.store(out_ptrs, acc.to(tl.float16), mask=(rows[:, None] < M) & (cols[None, :] < N))


def plain(x):
    return x.stride(1) == 1 and x.stride(0) % 8 == 0


def programs():
    return torch.cuda.get_device_properties(0).multi_processor_count if torch.cuda.is_available() else 3


def matmul_open(a, b, out):
    M, K = a.shape
    N = b.shape[1]
    if plain(a) and plain(b) and plain(out):
        tiles = [TensorDescriptor.from_tensor(x, shape) for x, shape in ((a, [64, 32]), (b, [32, 64]), (out, [64, 64]))]
        count = programs()
        described[(count,)](*tiles, M, N, K, PROGRAMS=count, BLOCK=64, BLOCK_K=32)
    else:
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        pointers[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride(), BLOCK=64, BLOCK_K=32)
