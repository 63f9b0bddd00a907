# right: the tile whose waves take the least time; one has 192 columns, in two blocks of 128 and 64
# runs: anywhere
from functools import cache

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

SHAPES = (  # rows and columns of a tile, the time per element relative to the first, and what the compiler needs
    (128, 256, 1.0, {"BLOCK_K": 64, "GROUP": 16, "num_warps": 8, "num_stages": 4}),
    (128, 192, 1.2, {"BLOCK_K": 64, "GROUP": 4, "num_warps": 8, "num_stages": 4}),
    (64, 128, 1.85, {"BLOCK_K": 64, "GROUP": 4, "num_warps": 4, "num_stages": 6}),
)


@triton.jit
def place(tile, M, N, BLOCK_M, BLOCK_N, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = tile // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = tile % (GROUP * tiles_n)
    return (first + inside % height) * BLOCK_M, inside // height * BLOCK_N


@triton.jit
def store_halves(out, row, column, accumulator, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    low, high = tl.split(tl.permute(tl.reshape(accumulator, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
    out.store([row, column], low.to(tl.float16))
    out.store([row, column + BLOCK_N // 2], high.to(tl.float16))


@triton.jit
def tile_kernel(
    a, b, out, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr
):
    row, column = place(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        accumulator = tl.dot(a.load([row, k]), b.load([k, column]), accumulator)
    store_halves(out, row, column, accumulator, BLOCK_M, BLOCK_N)


@triton.jit
def wide_tile_kernel(
    a, b, narrow, out, M, N, K, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    row, column = place(tl.program_id(0), M, N, BLOCK_M, 192, GROUP)
    first = tl.zeros((BLOCK_M, 128), dtype=tl.float32)
    rest = tl.zeros((BLOCK_M, 64), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        left = a.load([row, k])
        first = tl.dot(left, b.load([k, column]), first)
        rest = tl.dot(left, narrow.load([k, column + 128]), rest)
    store_halves(out, row, column, first, BLOCK_M, 128)
    out.store([row, column + 128], rest.to(tl.float16))


@triton.jit
def persistent_kernel(
    a, b, out, M, N, K, PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    stored = tl.program_id(0) - PROGRAMS
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        row, column = place(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(steps):
            left, right = a.load([row, step * BLOCK_K]), b.load([step * BLOCK_K, column])
            accumulator = tl.dot(left, right, accumulator)
        stored += PROGRAMS
        row, column = place(stored, M, N, BLOCK_M, BLOCK_N, GROUP)
        store_halves(out, row, column, accumulator, BLOCK_M, BLOCK_N)


@triton.jit
def pointer_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row, column = place(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    rows, columns = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
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
    out_ptrs = out_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
    tl.store(out_ptrs, accumulator.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


def describable(x):
    return x.stride(1) == 1 and x.stride(0) % 8 == 0 and x.stride(0) > 0


def has_descriptors(device):
    return device.type == "cpu" or torch.cuda.get_device_capability(device)[0] in (9, 10)


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


@cache
def best_shape(M, N, sms):
    def time_of_waves(shape):
        m, n, per_element, _ = shape
        return triton.cdiv(triton.cdiv(M, m) * triton.cdiv(N, n), sms) * m * n * per_element

    return min(SHAPES, key=time_of_waves)


def described(x, *block):
    return TensorDescriptor(x, list(x.shape), list(x.stride()), list(block))


def matmul_open(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    if has_descriptors(a.device) and all(describable(x) for x in (a, b, out)):
        sms = sm_count(a.device)
        m, n, _, options = best_shape(M, N, sms)
        k = options["BLOCK_K"]
        tiles = triton.cdiv(M, m) * triton.cdiv(N, n)
        left = described(a, m, k)
        if n == 192:
            right, narrow, to = described(b, k, 128), described(b, k, 64), described(out, m, 64)
            wide_tile_kernel[(tiles,)](left, right, narrow, to, M, N, K, BLOCK_M=m, **options)
            return
        right, to = described(b, k, n), described(out, m, n // 2)
        if tiles <= sms:
            tile_kernel[(tiles,)](left, right, to, M, N, K, BLOCK_M=m, BLOCK_N=n, **options)
        else:
            programs = triton.cdiv(tiles, triton.cdiv(tiles, sms))
            grid = (programs,)
            persistent_kernel[grid](left, right, to, M, N, K, PROGRAMS=programs, BLOCK_M=m, BLOCK_N=n, **options)
    else:
        tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
        strides = (*a.stride(), *b.stride(), *out.stride())
        pointer_kernel[(tiles,)](a, b, out, M, N, K, *strides, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP=8,
                                 num_warps=8, num_stages=3)  # fmt: skip
