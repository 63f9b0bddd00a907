# mistake: half a tile is stored with a descriptor for whole tiles
# says: does not have the descriptor's `block_shape`
# runs: simulator

from functools import cache

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LARGE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 16, "num_warps": 8, "num_stages": 4}
SMALL = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8, "num_warps": 4, "num_stages": 6}


@triton.jit
def place(tile, M, N, BLOCK_M, BLOCK_N, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = tile // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = tile % (GROUP * tiles_n)
    return (first + inside % height) * BLOCK_M, inside // height * BLOCK_N


@triton.jit
def persistent_kernel(
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
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    stored = tl.program_id(0) - PROGRAMS  # counted apart: loads of the next tile need not wait for this one's store
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        row, column = place(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(steps):
            left = a.load([row, step * BLOCK_K])
            right = b.load([step * BLOCK_K, column])
            accumulator = tl.dot(left, right, accumulator)
        stored += PROGRAMS
        row, column = place(stored, M, N, BLOCK_M, BLOCK_N, GROUP)
        halves = tl.permute(tl.reshape(accumulator, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        low, high = tl.split(halves)  # half a tile at a time takes half the shared memory
        out.store([row, column], low.to(tl.float16))
        out.store([row, column + BLOCK_N // 2], high.to(tl.float16))


@triton.jit
def pointer_kernel(
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
    """Whether there is hardware for descriptors, and enough shared memory for these tiles."""
    return device.type == "cpu" or torch.cuda.get_device_capability(device)[0] in (9, 10)


@cache
def sm_count(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def matmul_open(a, b, out):
    (M, K), N = a.shape, b.shape[1]
    if has_descriptors(a.device) and all(describable(x) for x in (a, b, out)):
        sms = sm_count(a.device)
        many = triton.cdiv(M, 128) * triton.cdiv(N, 256) >= 0.9 * sms  # the large tiles keep nearly all SMs busy
        shape = LARGE if many else SMALL
        m, n, k = shape["BLOCK_M"], shape["BLOCK_N"], shape["BLOCK_K"]
        tiles = triton.cdiv(M, m) * triton.cdiv(N, n)
        programs = triton.cdiv(tiles, triton.cdiv(tiles, sms))  # no SM has more to do, and some may have nothing
        blocks = zip((a, b, out), ([m, k], [k, n], [m, n]), strict=True)
        described = [TensorDescriptor(x, list(x.shape), list(x.stride()), block) for x, block in blocks]
        persistent_kernel[(programs,)](*described, M, N, K, PROGRAMS=programs, **shape)
    else:
        tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
        strides = (*a.stride(), *b.stride(), *out.stride())
        pointer_kernel[(tiles,)](
            a, b, out, M, N, K, *strides, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP=8, num_warps=8, num_stages=3
        )
