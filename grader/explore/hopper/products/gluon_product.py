"""The product in Gluon: the blocks are Triton's, and the ring of stages, its barriers and the layouts are yours."""
# mypy: ignore-errors

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared  # the second is the name in Triton 3.7
store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


@gluon.jit
def corner(tile, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GROUP: gl.constexpr):
    tiles_m, tiles_n = gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N)
    first = tile // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    inside = tile % (GROUP * tiles_n)
    return (first + inside % height) * BLOCK_M, inside // height * BLOCK_N


@gluon.jit
def produce(a, b, left, right, full, empty, M, N, K, GROUP: gl.constexpr):
    BLOCK_M: gl.constexpr = left.shape[1]
    BLOCK_N: gl.constexpr = right.shape[2]
    BLOCK_K: gl.constexpr = left.shape[2]
    STAGES: gl.constexpr = left.shape[0]
    step = 0
    for tile in range(gl.program_id(0), gl.cdiv(M, BLOCK_M) * gl.cdiv(N, BLOCK_N), gl.num_programs(0)):
        row, column = corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        for k in range(0, K, BLOCK_K):
            #: barrier
            stage = step % STAGES
            mbarrier.wait(empty.index(stage), step // STAGES % 2 ^ 1)
            mbarrier.expect(full.index(stage), a.block_type.nbytes + b.block_type.nbytes)
            #: copy
            load(a, [row, k], full.index(stage), left.index(stage))
            load(b, [k, column], full.index(stage), right.index(stage))
            #: barrier
            step += 1


#: rest
@gluon.jit
def consume(out, left, right, half_tile, full, empty, M, N, K, GROUP: gl.constexpr):
    BLOCK_M: gl.constexpr = left.shape[1]
    BLOCK_N: gl.constexpr = right.shape[2]
    BLOCK_K: gl.constexpr = left.shape[2]
    STAGES: gl.constexpr = left.shape[0]
    #: multiply
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [8, 1], [16, BLOCK_N, 16])
    #: rest
    step = 0
    for tile in range(gl.program_id(0), gl.cdiv(M, BLOCK_M) * gl.cdiv(N, BLOCK_N), gl.num_programs(0)):
        row, column = corner(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        total = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, sums)
        for k in range(0, K, BLOCK_K):
            #: barrier
            stage = step % STAGES
            mbarrier.wait(full.index(stage), step // STAGES % 2)
            #: multiply
            total = warpgroup_mma(left.index(stage), right.index(stage), total, is_async=True)
            total = warpgroup_mma_wait(1, deps=(total,))
            #: barrier
            mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), pred=k > 0)
            step += 1
        #: multiply
        total = warpgroup_mma_wait(0, deps=(total,))
        #: barrier
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES))
        #: store
        halves = total.to(gl.float16).reshape([BLOCK_M, 2, BLOCK_N // 2]).permute([0, 2, 1]).split()
        for part in gl.static_range(2):
            tma.store_wait(0)
            half_tile.store(halves[part])
            fence_async_shared()
            store(out, [row, column + part * (BLOCK_N // 2)], half_tile)
    tma.store_wait(0)


#: rest
@gluon.jit
def kernel(a, b, out, M, N, K, STAGES: gl.constexpr, GROUP: gl.constexpr):
    #: copy
    left = gl.allocate_shared_memory(gl.float16, [STAGES] + a.block_type.shape, a.layout)
    right = gl.allocate_shared_memory(gl.float16, [STAGES] + b.block_type.shape, b.layout)
    #: store
    half_tile = gl.allocate_shared_memory(gl.float16, out.block_type.shape, out.layout)
    #: barrier
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    #: rest
    gl.warp_specialize(
        [
            (consume, (out, left, right, half_tile, full, empty, M, N, K, GROUP)),
            (produce, (a, b, left, right, full, empty, M, N, K, GROUP)),
        ],
        [1],
        [40],
    )


def product(a, b, out):
    blocks = [128, 64], [64, 256], [128, 128]
    #: copy
    layouts = [gl.NVMMASharedLayout.get_default_for(block, gl.float16) for block in blocks]
    described = map(TensorDescriptor.from_tensor, (a, b, out), blocks, layouts)
    #: rest
    sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    kernel[(sms,)](*described, *out.shape, a.shape[1], STAGES=4, GROUP=16, num_warps=8)
