"""The rungs of a matrix product against cuBLAS in the same run; tiles, warps and stages of the last rung."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernels import load
from benchmarks.limits import Fault
from benchmarks.rows import Recorder
from benchmarks.timing import HEAD_START_CYCLES, in_turn
from grader.exercise import Exercise
from grader.exercises import find
from grader.exercises.triton.products import PLOT_CASES
from grader.judge.checking.buffers import generator
from grader.judge.checking.compare import within
from grader.judge.score import interval

SIZES = (1024, 2048, 4096, 8192)
CUBLAS, THEN_LEAKY, FUSED = "cuBLAS", "cuBLAS, then leaky ReLU", "fused leaky ReLU"
LAST = "descriptors, persistent grid"
_LEAST = {(LAST, 2048): 0.95, (LAST, 4096): 1.0, (LAST, 8192): 1.0, (FUSED, 4096): 1.03, (FUSED, 8192): 1.03}
_FIRST = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}  # the values in the notebook's cell
_REPEATS = 40
_SWEEP_REPEATS = 15
_SHARED_BYTES = 227 << 10  # per block on a Hopper GPU
_SUMS_OF_A_THREAD = 128  # of the 255 registers that a thread can have

Product = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]


@dataclass(frozen=True)
class Setting:
    """The persistent kernel's parameters. `even`: as many programs as share the tiles evenly, instead of one per SM."""

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    group: int
    even: bool

    @property
    def shared_bytes(self) -> int:
        """The shared memory for the buffers of all stages, and for the half tile that is stored at once."""
        staged = self.stages * (self.block_m + self.block_n) * self.block_k
        return 2 * (staged + self.block_m * self.block_n // 2) + 128

    @property
    def fits(self) -> bool:
        sums = self.block_m * self.block_n // (32 * self.warps)
        return self.shared_bytes <= _SHARED_BYTES and sums <= _SUMS_OF_A_THREAD

    def __str__(self) -> str:
        shape = f"{self.block_m} × {self.block_n} × {self.block_k}"
        share = "even shares" if self.even else "all SMs"
        return f"{shape}, {self.warps} warps, {self.stages} stages, groups of {self.group}, {share}"


def settings() -> Iterator[Setting]:
    """Yield the settings that are worth trying and fit a Hopper GPU."""
    shapes = ((128, 256, 64), (256, 128, 64), (128, 128, 64), (64, 256, 64))
    for shape, warps, stages, group, even in itertools.product(shapes, (4, 8), (3, 4), (4, 8, 16), (True, False)):
        setting = Setting(*shape, warps, stages, group, even)
        if setting.fits:
            yield setting


def rungs(folder: Path) -> dict[str, Product]:
    """Return the ladder by name: the reference solutions, and the first one's kernel with fixed settings."""
    tuned, fused, last = (load(find(each), folder) for each in ("matmul", "matmul_leaky_relu", "matmul_open"))
    kernel = _globals(tuned)["matmul_kernel"].fn
    return {
        CUBLAS: find("matmul").baseline("cublas").function,
        "one tile per program": partial(_untuned, kernel, 1),
        "grouped order": partial(_untuned, kernel, 8),
        "autotuned": tuned,
        LAST: last,
        THEN_LEAKY: find("matmul_leaky_relu").baseline("cublas").function,
        FUSED: fused,
    }


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    return function.__globals__


def _untuned(kernel: Any, group: int, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    (m, k), n = a.shape, b.shape[1]
    tiles = -(-m // _FIRST["BLOCK_M"]) * -(-n // _FIRST["BLOCK_N"])
    strides = (*a.stride(), *b.stride(), *out.stride())
    kernel[(tiles,)](a, b, out, m, n, k, *strides, **_FIRST, GROUP=group, num_warps=4, num_stages=2)


def matmuls(recorder: Recorder) -> None:
    """Rows `matmuls`, one case per rung and size: its rate, and the ratio to the same work with cuBLAS.

    Raises:
        Fault: the last or the fused rung is too slow.
    """
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        ladder = rungs(Path(folder))
        for size in SIZES:
            arrays = drawn(size)
            for name, rung in ladder.items():
                must_be_right(name, rung, arrays)
            calls = {name: partial(rung, *arrays) for name, rung in ladder.items()}
            times = in_turn(calls, HEAD_START_CYCLES, _REPEATS)
            for name, samples in times.items():
                peer = THEN_LEAKY if name in (FUSED, THEN_LEAKY) else CUBLAS
                ratio = _record(recorder, "matmuls", f"{name}, {size}", size, samples, times[peer])
                least = _LEAST.get((name, size), 0.0)
                if ratio < least:
                    faults.append(f"matmuls: {name} at {size}: {ratio:.3f}× cuBLAS, but {least}× is needed")
    if faults:
        raise Fault("\n".join(faults))


def sweep(recorder: Recorder) -> None:
    """Rows `matmuls/sweep`: the persistent kernel with each setting, at 2048, 4096 and 8192. Needs a Hopper GPU."""
    with tempfile.TemporaryDirectory() as folder:
        known = _globals(load(find("matmul_open"), Path(folder)))
        cublas = find("matmul").baseline("cublas").function
        for size in SIZES[1:]:
            arrays = drawn(size)
            for setting in settings():
                product = partial(_persistent, known, setting)
                try:
                    must_be_right(str(setting), product, arrays)
                except Exception as error:  # that a setting does not compile is a result, too
                    print(f"{size}: {setting}: {type(error).__name__}: {str(error)[:200]}", flush=True)
                    continue
                calls = {CUBLAS: partial(cublas, *arrays), "": partial(product, *arrays)}
                times = in_turn(calls, HEAD_START_CYCLES, _SWEEP_REPEATS)
                _record(recorder, "matmuls/sweep", f"{size}: {setting}", size, times[""], times[CUBLAS])


def _persistent(
    known: Mapping[str, Any], setting: Setting, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor
) -> None:
    """Run the reference kernel of `matmul_open` with this setting; `known` has the solution's names."""
    (m, k), n = a.shape, b.shape[1]
    blocks = ((setting.block_m, setting.block_k), (setting.block_k, setting.block_n),
              (setting.block_m, setting.block_n // 2))  # fmt: skip
    described = [
        known["TensorDescriptor"].from_tensor(x, list(shape)) for x, shape in zip((a, b, out), blocks, strict=True)
    ]
    tiles = math.ceil(m / setting.block_m) * math.ceil(n / setting.block_n)
    sms = known["sm_count"](a.device)
    programs = math.ceil(tiles / math.ceil(tiles / sms)) if setting.even else min(sms, tiles)
    known["persistent_kernel"][(programs,)](
        *described, m, n, k, PROGRAMS=programs, BLOCK_M=setting.block_m, BLOCK_N=setting.block_n,
        BLOCK_K=setting.block_k, GROUP=setting.group, num_warps=setting.warps, num_stages=setting.stages,
    )  # fmt: skip


def drawn(size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return two random `size` × `size` matrices on the GPU and one for their product, all in float16."""
    source = generator("cuda")
    a, b = (torch.randn(size, size, generator=source, device="cuda").half() for _ in range(2))
    return a, b, torch.empty_like(a)


def must_be_right(name: str, product: Product, arrays: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
    """Raise ArithmeticError if the result is not the oracle's."""
    a, b, out = arrays
    out.fill_(float("nan"))
    product(a, b, out)
    exercise: Exercise = find("matmul_leaky_relu" if name in (FUSED, THEN_LEAKY) else "matmul")
    budget = next(case.budget for case in PLOT_CASES if case.arrays[0].shape == tuple(a.shape)) or exercise.budget
    if not bool(within(out, exercise.oracle({"a": a.double(), "b": b.double()}), budget).all()):
        raise ArithmeticError(f"{name} is wrong at {a.shape[0]}. No figure is written.")


def _record(recorder: Recorder, bench: str, case: str, size: int, samples: list[float], peer: list[float]) -> float:
    """Add the rate and the ratio to cuBLAS, call by call. Return the ratio."""
    rates = [2 * size**3 / us / 1e6 for us in samples]
    recorder.add(bench, case, "rate_tflops", "TFLOPS", *astuple(interval(rates)))
    ratio = interval([theirs / ours for theirs, ours in zip(peer, samples, strict=True)])
    recorder.add(bench, case, "ratio_vs_cublas", "1", *astuple(ratio))
    return ratio.middle
