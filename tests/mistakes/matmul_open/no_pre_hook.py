# mistake: no pre_hook gives the descriptors their block shapes
# says: `block_shape` is still the placeholder
# runs: simulator

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def shapes(args):
    args["a"].block_shape = [args["BLOCK_M"], args["BLOCK_K"]]
    args["b"].block_shape = [args["BLOCK_K"], args["BLOCK_N"]]
    args["out"].block_shape = [args["BLOCK_M"], args["BLOCK_N"]]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8}, num_warps=8, num_stages=4),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 8}, num_warps=8, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def fast_kernel(
    a,
    b,
    out,
    M,
    N,
    K,
    PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        first = tile // (GROUP * tiles_n) * GROUP
        height = tl.minimum(tiles_m - first, GROUP)
        inside = tile % (GROUP * tiles_n)
        row = (first + inside % height) * BLOCK_M
        column = inside // height * BLOCK_N
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            sums = tl.dot(a.load([row, k]), b.load([k, column]), sums)
        out.store([row, column], sums.to(tl.float16))


@triton.jit
def slow_kernel(a_ptr, b_ptr, out_ptr, M, N, K, am, ak, bk, bn, om, on, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, B)
    sums = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, B):
        s = start + k
        x = tl.load(
            a_ptr + rows[:, None] * am + s[None, :] * ak, mask=(rows[:, None] < M) & (s[None, :] < K), other=0.0
        )
        y = tl.load(
            b_ptr + s[:, None] * bk + cols[None, :] * bn, mask=(s[:, None] < K) & (cols[None, :] < N), other=0.0
        )
        sums = tl.dot(x, y, sums)
    tl.store(
        out_ptr + rows[:, None] * om + cols[None, :] * on,
        sums.to(tl.float16),
        mask=(rows[:, None] < M) & (cols[None, :] < N),
    )


def fits(t):
    return t.stride(1) == 1 and t.stride(0) % 8 == 0 and t.data_ptr() % 16 == 0


def matmul_open(a, b, out):
    M, K = a.shape
    N = b.shape[1]
    if fits(a) and fits(b) and fits(out):
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 4
        d = [TensorDescriptor.from_tensor(t, [1, 8]) for t in (a, b, out)]
        fast_kernel[(programs,)](*d, M, N, K, PROGRAMS=programs)
    else:
        slow_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
            a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride(), B=64
        )
