"""Numba kernels whose results are right in the simulator: races are named, and a GPU's limits hold."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
_SCRIPT = Path(__file__).parent / "numba_kernels.py"
_BEGIN = """
from grader.worker.simulator import numba_on_cpu
numba_on_cpu.offer()
import torch
from numba import cuda, float32
from grader.worker.arrays import numba_arrays
x = torch.zeros(64)

@cuda.jit
def kernel(x):
    if SHARED:
        cuda.shared.array(SHARED, float32)
    if cuda.threadIdx.x < LANES:
        x[0] = cuda.shfl_sync(0xFFFFFFFF, x[0], 0)

"""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_ENABLE_CUDASIM"}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=600)


@functools.cache
def _observed() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return what the racing kernels, the right ones and the wasteful ones were seen to do."""
    done = _run(str(_SCRIPT))
    assert done.returncode == 0, done.stderr[-3000:]
    races, right, wasteful = json.loads(done.stdout.splitlines()[-1])
    return races, right, wasteful


def test_races_are_named() -> None:
    """Each result is right, and each race is seen."""
    races, *_ = _observed()
    assert len(races) >= 15
    assert [name for name, each in races.items() if not each["right"]] == []
    assert [name for name, each in races.items() if not each["observed"]] == []


def test_right_kernels_are_left_alone() -> None:
    """Barriers, shuffles, votes, atomics and tickets order the accesses. Two shared arrays on a line are two arrays."""
    _, right, _ = _observed()
    assert [name for name, each in right.items() if not each["right"]] == []
    assert [each["observed"] for each in right.values() if each["observed"]] == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("everyone_adds", "A race: thread 0 stores to `out[0]` and thread 1 loads it, both in line "),
        ("every_block_adds", "A race: thread 0 of block 0 stores to `out[0]` and thread 0 of block 1 loads it"),
        ("shared_is_zeroed_without_a_barrier", "stores to `total[0]` and thread 1 changes it by an atomic, in line 5"),
        ("rows_of_a_block", "A race: thread (0, 0) stores to `out[0]` and thread (1, 0) loads it"),
    ],
)
def test_a_race_is_described(name: str, says: str) -> None:
    """The message names the array and its element, both threads and the lines."""
    races, *_ = _observed()
    (first, *_) = races[name]["observed"]
    assert (says in first["message"], first["kind"]) == (True, "fails_on_gpu"), first


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("stores_columns", "Each warp's store to `out` touches 32 sectors of 32 bytes; 4 would do."),
        ("loads_columns", "Each warp's load of `x` touches 32 sectors of 32 bytes; 4 would do."),
        ("eight_in_a_row_for_each_thread", "Each warp's store to `out` touches 32 sectors of 32 bytes; 8 would do."),
        ("tile_without_padding", "32 lanes of each warp's load of `tile` meet in one bank of shared memory"),
    ],
)
def test_a_wasteful_access_is_named(name: str, says: str) -> None:
    """In a note with the line, without points. Good kernels get none: see `test_right_kernels_are_left_alone`."""
    *_, wasteful = _observed()
    notes = [each for each in wasteful[name]["observed"] if each["message"].startswith(says)]
    assert [each["kind"] for each in notes] == ["note"], wasteful[name]
    assert wasteful[name]["right"]
    text = _SCRIPT.read_text().splitlines()[notes[0]["line"] - 1]
    assert says.split("`")[1] in text


@pytest.mark.parametrize(
    ("launch", "shared", "lanes", "says"),
    [
        ("[1, 2048]", 0, 0, "A block of this launch has 2048 threads, and a GPU allows at most 1,024"),
        ("[1, (1, 1, 128)]", 0, 0, "The block of this launch has length 128 along z, and a GPU allows 1 to 64"),
        ("[(1, 70_000), 1]", 0, 0, "The grid of this launch has length 70,000 along y"),
        ("[1, 32, 0, 1 << 20]", 0, 0, "A block has 1,048,576 B of shared memory, and a GPU allows at most 232,448 B"),
        ("[1, 32]", 16_384, 0, "A block has 65,536 B of shared memory in `cuda.shared.array`"),
        ("[1, 32]", 0, 7, ""),
    ],
)
def test_a_gpus_limits_hold(tmp_path: Path, launch: str, shared: int, lanes: int, says: str) -> None:
    """Threads, lengths of blocks and grids, and shared memory: the error names the number and the limit."""
    path = tmp_path / "case.py"
    text = _BEGIN.replace("SHARED", str(shared)).replace("LANES", str(lanes))
    path.write_text(f"{text}kernel{launch}(*numba_arrays(x))\n")
    done = _run(str(path))
    assert (done.returncode != 0) == bool(says), done.stderr
    assert says in done.stderr


_BARRIERS = """
@cuda.jit
def halves(x):
    if cuda.threadIdx.x < 32:
        cuda.syncthreads()
    OTHERS
try:
    halves[1, 64](*numba_arrays(x))
    print("passes")
except RuntimeError as error:
    print(error)
"""
_OF_A_FUNCTION = """
def made(n):
    from numba import cuda
    @cuda.jit(device=True)
    def exchanged(part, i):
        cuda.syncthreads()
        return part[n - 1 - i]
    @cuda.jit
    def reversed(x):
        part = cuda.shared.array(n, cuda.float32)
        part[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        if cuda.threadIdx.x < LANES:
            x[cuda.threadIdx.x] = exchanged(part, cuda.threadIdx.x)
    return reversed
made(64)[1, 64](x)
print(x[0] == x[63] + 63)
"""
_GRID = """
@cuda.jit
def everywhere(x):
    x[cuda.grid(1)] = 1
    cuda.cg.this_grid().sync()
everywhere[BLOCKS, 32](x)
print(x[0])
"""


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ("pass", "32 of 64 threads of a block wait at cuda.syncthreads() on line 5, and the other 32 ended without"),
        ("else: cuda.syncthreads()", "on line 5, and others wait at cuda.syncthreads() on line 6: all of them must"),
        ("cuda.syncthreads()", "on line 5, and others wait at cuda.syncthreads() on line 6: all of them must"),
    ],
)
def test_a_barrier_that_not_all_threads_reach_is_an_error(fork_server: Any, tmp_path: Path, others: str, says: str):
    """With the line, and as in CUDA C++, whatever the threads that miss it do."""
    (tmp_path / "case.py").write_text(_BARRIERS.replace("OTHERS", others))
    code = "import torch\nfrom numba import cuda\nfrom grader.worker.arrays import numba_arrays\nx = torch.zeros(64)\n"
    status, output = fork_server.run(f"{code}exec(compile(open('case.py').read(), 'case.py', 'exec'))", tmp_path)
    assert (status, says in output) == (0, True), output


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (_OF_A_FUNCTION.replace("LANES", "64"), "tensor(True)"),
        (
            _OF_A_FUNCTION.replace("LANES", "40"),
            "40 of 64 threads of a block wait at cuda.syncthreads() on line 6, and",
        ),
        (_GRID.replace("BLOCKS", "1"), "tensor(1.)"),
        (_GRID.replace("BLOCKS", "2"), "The simulator has no `cuda.cg.this_grid().sync()` for more than one block"),
    ],
)
def test_barriers_of_inner_kernels_and_of_grids(fork_server: Any, tmp_path: Path, code: str, says: str) -> None:
    """A kernel made by a function is like any other; a barrier of several blocks is not judged."""
    (tmp_path / "case.py").write_text(code)
    begin = (
        "import torch\nfrom numba import cuda\nfrom grader.worker.arrays import numba_arrays\nx = torch.arange(64.)\n"
    )
    _, output = fork_server.run(f"{begin}exec(compile(open('case.py').read(), 'case.py', 'exec'))", tmp_path)
    assert says in output
