"""Kernels are compiled without a GPU, and narrow loads are reported with their reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.worker.harnesses.triton_kernels import Launch, NarrowLoads, WideLoads, _launched, load_widths, share_of_wide
from grader.worker.toolchain.compile_only import CannotBeSeen, CompileFailed, Compiler, described
from grader.worker.toolchain.compile_process import _Tensor

KERNELS = """
import triton
import triton.language as tl

print("what a submission prints is no answer")

@triton.jit
def copy_kernel(x_ptr, out_ptr, n, RUN: tl.constexpr, BLOCK: tl.constexpr = 1024):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.max_constancy(i < n, RUN)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask), mask=mask)

@triton.jit
def row_kernel(
    x_ptr, out_ptr, stride, columns, X: tl.constexpr, OUT: tl.constexpr, RUN: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = tl.max_constancy(column < columns, RUN)
    x = tl.load(x_ptr + tl.multiple_of(row * stride, X) + column, mask=mask, other=0.0)
    tl.store(out_ptr + tl.multiple_of(row * stride, OUT) + column, x, mask=mask)

@triton.jit
def staged_kernel(x_ptr, out_ptr, stride, columns, RUN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.multiple_of(tl.program_id(0) * stride, 4)
    for start in tl.range(0, columns, BLOCK, num_stages=3):
        column = start + tl.arange(0, BLOCK)
        mask = tl.max_constancy(column < columns, RUN)
        tl.store(out_ptr + at + column, tl.load(x_ptr + at + column, mask=mask, other=0.0), mask=mask)

@triton.jit
def tile_kernel(tile, out_ptr):
    at = tl.arange(0, 32)
    tl.store(out_ptr + at[:, None] * 32 + at[None, :], tile.load([0, 0]))

@triton.jit
def broken_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), tl.no_such_thing(x_ptr))
"""
TENSOR = {"tensor": "float32", "aligned": True}


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    """Start one process for all tests of this module."""
    with Compiler() as found:
        yield found


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "some_kernels.py"
    path.write_text(KERNELS)
    return path


def _arguments(run: int, **options: Any) -> dict[str, Any]:
    given = {"n": 1004, "RUN": run, "BLOCK": 1024} | options
    return {"x_ptr": TENSOR, "out_ptr": TENSOR} | {name: {"value": value} for name, value in given.items()}


@pytest.mark.parametrize(("dtype", "size"), [("float16", 64), ("float32", 64), ("uint8", 64)])
def test_a_kernel_that_is_given_a_tile_by_its_descriptor_is_compiled_too(
    compiler: Compiler, kernels: Path, dtype: str, size: int
) -> None:
    """The code has a bulk copy of the tile, for elements of any width."""
    tile = {"descriptor": dtype, "shape": [size, size], "strides": [size, 1], "block_shape": [32, 32]}
    arguments = {"tile": tile, "out_ptr": {"tensor": dtype, "aligned": True}}
    assert "cp.async.bulk.tensor" in compiler.compile(kernels, "tile_kernel", arguments, 90)["ptx"]


@pytest.mark.parametrize("capability", [75, 80, 90, 100, 120])
@pytest.mark.parametrize("run", [2, 4])
def test_the_width_follows_the_hint_on_every_gpu(compiler: Compiler, kernels: Path, capability: int, run: int) -> None:
    """The mask is known to be equal for 2 or 4 neighbours, so loads have 8 or 16 bytes."""
    found = compiler.compile(kernels, "copy_kernel", _arguments(run), capability)
    assert set(load_widths(found["ptx"])) == {4 * run}
    assert found["num_warps"] == 4


def test_options_of_a_launch_count(compiler: Compiler, kernels: Path) -> None:
    """With 16 warps, a block of 1,024 has two elements per thread, so no load is wider than 8 bytes."""
    found = compiler.compile(kernels, "copy_kernel", _arguments(4, num_warps=16), 90)
    assert (set(load_widths(found["ptx"])), found["num_warps"]) == ({8}, 16)


def test_a_kernel_that_is_wrong_is_told_apart_from_one_that_is_not_found(compiler: Compiler, kernels: Path) -> None:
    """The compiler's message is passed on, and the next request works."""
    with pytest.raises(CompileFailed, match="no_such_thing") as raised:
        compiler.compile(kernels, "broken_kernel", {"x_ptr": TENSOR, "BLOCK": {"value": 16}}, 90)
    assert not isinstance(raised.value, CannotBeSeen)
    with pytest.raises(CannotBeSeen, match="'nowhere'"):
        compiler.compile(kernels, "nowhere", {}, 90)
    assert compiler.compile(kernels, "copy_kernel", _arguments(4), 90)["ptx"]


def test_a_type_is_one_object() -> None:
    """Triton 3.6 caches types by address, and took float32 for float16 when a new type reused an address."""
    assert _Tensor("float16", True).dtype is _Tensor("float16", False).dtype
    assert str(_Tensor("float16", True).dtype) == "torch.float16"
    assert _Tensor("float16", True).dtype is not _Tensor("float32", True).dtype


def test_arguments_are_described_without_their_data() -> None:
    """Tensors are described by type and alignment, numbers by value; other types are refused."""
    import torch

    x = torch.zeros(8)
    assert described(x) == TENSOR
    assert described(x[1:]) == {"tensor": "float32", "aligned": False}
    assert described(3) == {"value": 3}
    assert described(x[0].numpy()[()]) == {"value": 0.0}
    with pytest.raises(CannotBeSeen, match="dict"):
        described({})


@pytest.mark.parametrize("capability", [75, 90, 120])
@pytest.mark.parametrize(
    ("x_known", "out_known", "run", "why"),
    [
        (4, 4, 1, "the addresses allow more, but the mask does not"),
        (1, 4, 4, "the layout allows more, but the addresses of the loads do not"),
        (1, 4, 1, "the layout allows more, but the addresses of the loads do not"),
        (1, 1, 4, "each thread has runs of length 1"),
    ],
)
def test_the_mask_is_blamed_only_where_it_is_to_blame(
    kernels: Path, x_known: int, out_known: int, run: int, why: str, capability: int
) -> None:
    """A load shares its layout with a store that may have better known addresses, so runs of four prove nothing."""
    wide = WideLoads(lambda *_: None, 16)
    numbers = {"stride": 1004, "columns": 1000, "X": x_known, "OUT": out_known, "RUN": run, "BLOCK": 1024}
    arguments = {"x_ptr": TENSOR, "out_ptr": TENSOR} | {name: {"value": value} for name, value in numbers.items()}
    with wide._compiler as compiler:
        found = compiler.compile(kernels, "row_kernel", arguments, capability)
        with pytest.raises(NarrowLoads, match=why):
            wide._judge([Launch("row_kernel", found["ptx"], found["ttgir"], 1, 128, capability)])


def test_a_pipelined_loop_gets_the_same_report(kernels: Path) -> None:
    """Its loads are copies to shared memory with their own masks."""
    wide = WideLoads(lambda *_: None, 16)
    numbers = {"stride": 1004, "columns": 5000, "BLOCK": 1024}
    arguments = {"x_ptr": TENSOR, "out_ptr": TENSOR} | {name: {"value": value} for name, value in numbers.items()}
    with wide._compiler as compiler:
        for run in (4, 1):
            found = compiler.compile(kernels, "staged_kernel", arguments | {"RUN": {"value": run}}, 90)
            launch = Launch("staged_kernel", found["ptx"], found["ttgir"], 1, 128, 90)
            assert "async_copy_global_to_local" in launch.ttgir
            if run == 4:
                wide._judge([launch])
                continue
            with pytest.raises(NarrowLoads, match="the addresses allow more, but the mask does not"):
                wide._judge([launch])


def _launch(name: str, loads: str, programs: int) -> Launch:
    return Launch(name, loads, "", programs, 128)


WIDE, NARROW = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\n", "ld.global.b32 %r1, [%rd1];\n"


def test_what_counts_is_the_share_of_the_bytes() -> None:
    """A short kernel for the remaining rows, or a scalar per program, does not make wide loads narrow."""
    assert share_of_wide([_launch("all", WIDE, 100)], 16) == 1
    assert share_of_wide([_launch("all", NARROW, 100)], 16) == 0
    assert share_of_wide([_launch("whole", WIDE + NARROW, 100), _launch("rest", 4 * NARROW, 1)], 16) > 0.75
    assert share_of_wide([_launch("whole", WIDE, 1), _launch("rest", NARROW, 100)], 16) < 0.1
    assert share_of_wide([_launch("tma", "cp.async.bulk.tensor.2d.shared::cta.global [%r1], [%rd1];", 1)], 16) == 1
    assert share_of_wide([], 16) == 0


def test_on_a_gpu_the_launches_are_those_of_the_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call may try many configurations of a kernel, so the next call is checked."""
    from triton.runtime.jit import JITFunction

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        text = {"ptx": WIDE if kwargs["BLOCK"] == 1024 else NARROW, "ttgir": ""}
        metadata = SimpleNamespace(num_warps=8, target=SimpleNamespace(arch=80))
        return SimpleNamespace(asm=text, metadata=metadata)

    monkeypatch.setattr(JITFunction, "run", run)
    kernel = SimpleNamespace(fn=lambda x, n, BLOCK, ROWS=2: None, __name__="copy_kernel")
    calls: list[int] = []

    def entry(x: Any) -> None:
        calls.append(len(calls))
        for block in (1024,) if len(calls) > 1 else (64, 128, 1024):
            grid = lambda meta: (meta["n"] // meta["BLOCK"], meta["ROWS"])  # noqa: E731
            JITFunction.run(kernel, x, 4096, grid=grid, warmup=False, BLOCK=block)
            JITFunction.run(kernel, x, 4096, grid=(1,), warmup=True, BLOCK=block)

    wide = WideLoads(entry, 16)
    tensor = SimpleNamespace(shape=(3, 4), is_cuda=True)
    wide(tensor)
    assert len(calls) == 2
    wide(tensor)
    assert len(calls) == 3
    assert JITFunction.run is run
    with _launched() as launches:
        entry(tensor)
    found = [(one.name, one.programs, one.threads, one.capability) for one in launches]
    assert found == [("copy_kernel", 8, 256, 80)]


@pytest.mark.gpu
def test_on_a_gpu_the_code_that_ran_is_seen(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook sees this Triton's launches: their code, programs and threads."""
    import importlib
    import os

    import torch

    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("Triton's interpreter was chosen in this process")
    monkeypatch.syspath_prepend(str(kernels.parent))
    kernel = importlib.import_module("some_kernels").copy_kernel
    x, out = torch.randn(4100, device="cuda"), torch.zeros(4100, device="cuda")
    with _launched() as launches:
        kernel[(5,)](x, out, 4100, RUN=4, BLOCK=1024)
    assert torch.equal(x, out)
    assert [(one.programs, one.threads, one.loaded(16)) for one in launches] == [(5, 128, (5 * 128 * 32,) * 2)]


IN_A_WORKER = """
import sys
from grader.worker.simulator import start
start.prepare()
import torch, triton
sys.path.insert(0, sys.argv[1])
from some_kernels import copy_kernel
from grader.worker.harnesses.triton_kernels import WideLoads

def launch(x, out, run, block):
    options = {} if block == 1024 else {"BLOCK": block}  # 1024 is the default
    copy_kernel[lambda meta: (triton.cdiv(len(x), meta["BLOCK"]),)](x, out, len(x), RUN=run, **options)

x = torch.randn(1004)
for run, block in ((4, 1024), (1, 1024), (4, 256), (0, 0)):
    out = torch.zeros(1004)
    try:
        WideLoads(lambda *tensors: launch(*tensors, run, block) if run else None, 16)(x, out)
        print("wide", torch.equal(x, out))
    except RuntimeError as error:
        print(type(error).__name__, error)
"""
SAID = """\
what a submission prints is no answer
wide True
NarrowLoads copy_kernel: its loads are too narrow, 4 B per thread instead of 16 B; the addresses allow more, \
but the mask does not
NarrowLoads copy_kernel: its loads are too narrow, 8 B per thread instead of 16 B; the block is too small \
(threads: 128, elements per thread: 2)
NoTritonKernel no Triton kernel was launched
"""


def test_in_the_simulator_kernels_are_compiled_as_well(kernels: Path) -> None:
    """The interpreter computes, and the interpreted kernels are compiled and checked as on a GPU."""
    command = [sys.executable, "-c", IN_A_WORKER, str(kernels.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == SAID, done.stdout + done.stderr
