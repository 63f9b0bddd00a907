"""Numba kernels with right results in the simulator: those in `RACES` are wrong on a GPU, the others are not.

The warps of those in `WASTEFUL` use more sectors of memory than they need, or one bank.

Run as a script, it prints what was observed for each as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from grader.worker.simulator import numba_on_cpu

numba_on_cpu.offer()

import torch  # noqa: E402
from numba import cuda, float32, int32  # noqa: E402

from grader.worker.arrays import numba_arrays  # noqa: E402
from grader.worker.simulator.accesses import take_observed  # noqa: E402

RACES: dict[str, Any] = {}
RIGHT: dict[str, Any] = {}
WASTEFUL: dict[str, Any] = {}


def case(table: dict[str, Any], grid: Any, block: Any, right: Callable[..., Any], *tensors: Any) -> Any:
    """Add a kernel: its launch, its arguments with the output last, and the function that gives the right output."""

    def add(kernel: Any) -> Any:
        table[kernel.__name__] = (cuda.jit(kernel), grid, block, tensors, right(*tensors))
        return kernel

    return add


def vector(n: int = 64) -> Any:
    return torch.arange(1.0, n + 1)


@case(RACES, 1, 64, lambda x, out: x.sum(), vector(), torch.zeros(1))
def everyone_adds(x, out):
    i = cuda.threadIdx.x
    out[0] += x[i]


@case(RACES, 4, 1, lambda x, out: x[:4].sum(), vector(), torch.zeros(1))
def every_block_adds(x, out):
    out[0] += x[cuda.blockIdx.x]


@case(RACES, 1, 64, lambda x, out: x.sum(), vector(), torch.zeros(1))
def shared_is_zeroed_without_a_barrier(x, out):
    total = cuda.shared.array(1, float32)
    i = cuda.threadIdx.x
    if i == 0:
        total[0] = 0
    cuda.atomic.add(total, 0, x[i])
    cuda.syncthreads()
    if i == 0:
        out[0] = total[0]


@case(RACES, 1, 64, lambda x, out: x.flip(0), vector(), torch.zeros(64))
def second_half_is_read_too_early(x, out):
    part = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    part[i] = x[i]
    if i < 32:
        cuda.syncwarp()
    if i >= 32:
        out[i] = part[63 - i]
    cuda.syncthreads()
    if i < 32:
        out[i] = part[63 - i]


@case(RACES, 1, 64, lambda x, out: x.sum(), vector(), torch.zeros(1))
def last_thread_adds_without_a_barrier(x, out):
    part = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    part[i] = x[i]
    if i == 63:
        for j in range(64):
            out[0] += part[j]


@case(RACES, 1, 64, lambda x, out: torch.cat([x[1:], x[:1]]), vector(), torch.zeros(64))
def tile_is_overwritten_too_early(x, out):
    part = cuda.shared.array(2, float32)
    i = cuda.threadIdx.x
    for k in range(64):
        if i == 0:
            part[0] = x[(k + 1) % 64]
        if i == 0:
            out[k] = part[0]
        cuda.syncthreads()
        if i == 1:
            part[1] = part[0]


@case(RACES, 4, 16, lambda x, part, out: x.sum(), vector(), torch.zeros(4), torch.zeros(1))
def last_block_sums(x, part, out):
    block, i = cuda.blockIdx.x, cuda.threadIdx.x
    if i == 0:
        for j in range(16):
            part[block] += x[16 * block + j]
    if block == 3 and i == 0:
        for j in range(4):
            out[0] += part[j]


@case(RACES, 1, 64, lambda x, out: torch.cat([x[1:], torch.zeros(1)]), vector(), torch.arange(1.0, 65.0))
def shift_in_place(x, out):
    i = cuda.grid(1)
    if i < 63:
        out[i] = out[i + 1]
    else:
        out[i] = 0


@case(RACES, 1, 64, lambda x, out: x.cumsum(0), vector(), torch.arange(1.0, 65.0))
def scan_in_place(x, out):
    i = cuda.grid(1)
    if i > 0:
        out[i] += out[i - 1]


@case(RACES, 1, 64, lambda x, out: x.max(), vector(), torch.zeros(1))
def maximum(x, out):
    i = cuda.grid(1)
    if x[i] > out[0]:
        out[0] = x[i]


@case(RACES, 1, 64, lambda x, out: torch.full((4,), 16.0), vector(), torch.zeros(4))
def histogram(x, out):
    i = cuda.grid(1)
    out[i % 4] += 1


@case(RACES, 2, 32, lambda x, out: x.mean(), vector(), torch.zeros(1))
def last_thread_divides(x, out):
    i = cuda.grid(1)
    cuda.atomic.add(out, 0, x[i])
    if i == 63:
        out[0] /= 64


@case(RACES, 2, 32, lambda x, out: x.sum(), vector(), torch.full((1,), 9.0))
def first_thread_zeroes(x, out):
    i = cuda.grid(1)
    if i == 0:
        out[0] = 0
    cuda.atomic.add(out, 0, x[i])


@case(RACES, 1, 64, lambda x, out: x.sum(), vector(), torch.zeros(1))
def lanes_of_a_warp_in_step(x, out):
    part = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    part[63 - i] = x[i]
    if i == 63:
        for j in range(32):
            part[0] += part[32 + j] + (part[j] if j else 0)
        out[0] = part[0]


@case(RACES, 1, (8, 8), lambda x, out: x.view(8, 8).sum(1), vector(), torch.zeros(8))
def rows_of_a_block(x, out):
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    out[row] += x[8 * row + column]


@case(RIGHT, 4, 16, lambda x, out: 2 * x, vector(), torch.zeros(64))
def doubled(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 2 * x[i]


@case(RIGHT, 1, 64, lambda x, out: x.sum(), vector(), torch.zeros(1))
def tree(x, out):
    part = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    part[i] = x[i]
    cuda.syncthreads()
    step = 32
    while step > 0:
        if i < step:
            part[i] += part[i + step]
        cuda.syncthreads()
        step //= 2
    if i == 0:
        out[0] = part[0]


@cuda.jit(device=True)
def sum_of_warp(value):
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    return value


@case(RIGHT, 1, 64, lambda x, out: x.sum(), vector(), torch.zeros(1))
def shuffled(x, out):
    total = sum_of_warp(x[cuda.threadIdx.x])
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, total)


@case(RIGHT, 1, 32, lambda x, out: x.flip(0) * 3, vector(32), torch.zeros(32))
def warp_functions(x, out):
    lane = cuda.laneid
    votes = cuda.ballot_sync(0xFFFFFFFF, lane < 3)
    some, every = cuda.any_sync(0xFFFFFFFF, lane == 5), cuda.all_sync(0xFFFFFFFF, lane == 5)
    alike = cuda.match_any_sync(0xFFFFFFFF, lane % 2) == (0x55555555 if lane % 2 == 0 else 0xAAAAAAAA)
    if some and alike and not every:
        out[lane] = cuda.shfl_xor_sync(0xFFFFFFFF, x[lane], 31) * cuda.popc(votes & cuda.activemask())


@case(RIGHT, 1, 32, lambda x, out: x.sum(), vector(32), torch.zeros(1))
def synchronised_lanes(x, out):
    part = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    part[i] = x[i]
    cuda.syncwarp()
    step = 16
    while step > 0:
        value = part[i] + (part[i + step] if i < step else 0)
        cuda.syncwarp()
        part[i] = value
        cuda.syncwarp()
        step //= 2
    if i == 0:
        out[0] = part[0]


@case(
    RIGHT, 4, 16, lambda x, part, ticket, out: x.sum(), vector(), torch.zeros(4), torch.zeros(1).int(), torch.zeros(1)
)
def last_ticket(x, part, ticket, out):
    last = cuda.shared.array(1, int32)
    block, i = cuda.blockIdx.x, cuda.threadIdx.x
    if i == 0:
        for j in range(16):
            part[block] += x[16 * block + j]
        cuda.threadfence()
        last[0] = cuda.atomic.add(ticket, 0, 1)
    cuda.syncthreads()
    if last[0] == 3 and i == 0:
        for j in range(4):
            out[0] += part[j]


@case(RIGHT, (2, 2), (4, 4), lambda x, out: x.view(8, 8) @ x.view(8, 8), vector().view(8, 8), torch.zeros(8, 8))
def tiled_product(x, out):
    a, b = cuda.shared.array((4, 4), float32), cuda.shared.array((4, 4), float32)
    column, row = cuda.grid(2)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    total = float32(0)
    for start in range(0, 8, 4):
        a[i, j] = x[row, start + j]
        b[i][j] = x[start + i, column]
        cuda.syncthreads()
        for k in range(4):
            total += a[i, k] * b[k][j]
        cuda.syncthreads()
    out[row, column] = total


@case(RIGHT, 1, 64, lambda x, out: torch.tensor([32.0, 1.0]), vector(), torch.zeros(2))
def counted(x, out):
    many = cuda.syncthreads_count(x[cuda.threadIdx.x] > 32)
    some = cuda.syncthreads_or(x[cuda.threadIdx.x] > 63)
    if cuda.threadIdx.x == 0:
        out[0], out[1] = many, some


@case(RIGHT, 2, 32, lambda x, out: torch.full((4,), 16.0), vector(), torch.zeros(4))
def histogram_in_shared_memory(x, out):
    bins = cuda.shared.array(4, float32)
    i = cuda.threadIdx.x
    if i < 4:
        bins[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(bins, i % 4, 1)
    cuda.syncthreads()
    if i < 4:
        cuda.atomic.add(out, i, bins[i])


@case(RIGHT, 2, 32, lambda x, out: torch.ones(1), vector(), torch.zeros(1))
def same_flag(x, out):
    if x[cuda.grid(1)] > 3:
        out[0] = 1


def square() -> Any:
    return vector(32 * 32).view(32, 32)


@case(WASTEFUL, 1, (32, 8), lambda x, out: x.T, square(), torch.zeros(32, 32))
def stores_columns(x, out):
    column = cuda.threadIdx.x
    for row in range(cuda.threadIdx.y, 32, 8):
        out[column, row] = x[row, column]


@case(WASTEFUL, 1, (32, 8), lambda x, out: x.T, square(), torch.zeros(32, 32))
def loads_columns(x, out):
    column = cuda.threadIdx.x
    for row in range(cuda.threadIdx.y, 32, 8):
        out[row, column] = x[column][row]


@case(WASTEFUL, 1, 32, lambda x, out: 2 * x, vector(256).double(), torch.zeros(256).double())
def eight_in_a_row_for_each_thread(x, out):
    first = 8 * cuda.grid(1)
    for i in range(first, first + 8):
        out[i] = 2 * x[i % x.size]


@case(WASTEFUL, 1, (32, 32), lambda x, out: x.T, square(), torch.zeros(32, 32))
def tile_without_padding(x, out):
    tile = cuda.shared.array((32, 32), float32)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    tile[i, j] = x[i, j]
    cuda.syncthreads()
    out[i, j] = tile[j, i]


@case(RIGHT, 1, (32, 32), lambda x, out: x.T, square(), torch.zeros(32, 32))
def tile_with_padding(x, out):
    tile = cuda.shared.array((32, 33), float32)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    tile[i, j] = x[i, j]
    cuda.syncthreads()
    out[i, j] = tile[j, i]


@case(RIGHT, 1, 64, lambda x, out: x[::8] + 1, vector(256), torch.zeros(32))
def some_lanes_far_apart(x, out):
    i = cuda.grid(1)
    if i % 2 == 0:
        out[i // 2] = x[4 * i] + 1


@case(RIGHT, 200, 32, lambda x, out: torch.full((200,), 496.0), vector(32) - 1, torch.zeros(200))
def more_blocks_than_are_logged(x, out):
    part = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    part[i] = x[i]
    cuda.syncthreads()
    if i == 0:
        total = float32(0)
        for j in range(32):
            total += part[j]
        out[cuda.blockIdx.x] = total


@case(RACES, 200, 64, lambda x, out: torch.ones(200), vector(64), torch.zeros(200))
def last_block_reads_too_early(x, out):
    part = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    part[i] = x[i]
    if cuda.blockIdx.x < 199:
        cuda.syncthreads()
    if i == 63:
        out[cuda.blockIdx.x] = part[0]
    cuda.syncthreads()


def observed(kernel: Any, grid: Any, block: Any, tensors: Any, right: Any) -> dict[str, Any]:
    """Whether the last tensor is right after a launch, and what was observed."""
    arrays = numba_arrays(*tensors)
    for each in arrays[:-1] if len(tensors) == 2 else ():
        each._ary.flags.writeable = False  # as inputs are
    kernel[grid, block](*arrays)
    return {"right": torch.allclose(tensors[-1], right.expand(tensors[-1].shape)), "observed": take_observed()}


if __name__ == "__main__":
    print(json.dumps([{name: observed(*each) for name, each in table.items()} for table in (RACES, RIGHT, WASTEFUL)]))
