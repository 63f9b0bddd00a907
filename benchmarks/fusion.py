"""The gain from fusion: kernels and times of two functions, eager and compiled, and Inductor's Triton code."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.kernels import load
from benchmarks.rows import Recorder
from benchmarks.timing import in_turn
from grader.exercises import find
from grader.explore import generated_code, list_kernels
from grader.judge.checking.buffers import generator
from grader.results import RESULTS

_AHEAD_CYCLES = 4_000_000  # some 2 ms: more than the host needs for the guards and launches of one call


def _one(x: Any) -> Any:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def fusion(recorder: Recorder) -> None:
    """Rows `fusion`, and `<gpu>-fusion-<name>.txt` next to them for `recorded_code`.

    The exercise's row compares the original function with the reference solution, compiled.
    """
    exercise = find("fuse")
    assert exercise.draw is not None
    source = generator("cuda")
    (case,) = exercise.timed_cases
    given = exercise.draw(case, source, recorder.machine)
    with tempfile.TemporaryDirectory() as folder:
        solution = load(exercise, Path(folder))
        original = exercise.baseline("eager").function
        # one is not a multiple of a block: its code has a mask, and it loads single elements
        for title, name, length in (
            ("sin² + cos²", "sin2_cos2", (1 << 26) - 1),
            ("sin² + cos², 2^26 elements", "sin2_cos2_even", 1 << 26),
        ):
            vector = torch.rand(length, device="cuda", generator=source)
            _measure(recorder, title, name, _one, _one, (vector,))
        _measure(recorder, f"fuse, {case.name}", "fuse", original, solution, tuple(given.values()))


def _measure(
    recorder: Recorder,
    case: str,
    name: str,
    eager: Callable[..., Any],
    function: Callable[..., Any],
    tensors: tuple[Any, ...],
) -> None:
    """Time `eager` against the compiled `function`; their results must agree."""
    code = generated_code(function, *tensors)
    wrong = (code.function(*tensors) - eager(*tensors)).abs().max().item()
    if not wrong < 1e-4:
        raise SystemExit(f"{case}: the compiled function differs by {wrong:g}. No figure is written.")
    add = partial(recorder.add, "fusion", case)
    add("kernels_eager", "1", _kernels(eager, *tensors))
    add("kernels_compiled", "1", _kernels(code.function, *tensors))
    ways = {"eager": partial(eager, *tensors), "compiled": partial(code.function, *tensors)}
    times = in_turn(ways, _AHEAD_CYCLES)
    for way, samples in times.items():
        add(f"{way}_us", "µs", median(samples), min(samples), max(samples))
    ratios = [before / after for before, after in zip(times["eager"], times["compiled"], strict=True)]
    add("ratio_vs_eager", "1", median(ratios), min(ratios), max(ratios))
    gpu = recorder.machine.gpu
    where = f"# Recorded on one {gpu} on {recorder.date}, torch {recorder.machine.torch}."
    head = f"{where} Not generated on this machine now."
    path = RESULTS / f"{gpu.lower().replace(' ', '-')}-fusion-{name}.txt"
    path.write_text(f"{head}\n{code.text}", encoding="utf-8")
    print(f"{case:40} {path.name}", flush=True)


def _kernels(function: Callable[..., Any], *tensors: Any) -> int:
    """Return how many kernels run, without copies between CPU and GPU."""
    return sum(not run.name.startswith("Mem") for run in list_kernels(function, *tensors).runs)
