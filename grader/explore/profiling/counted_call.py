"""Run one call of the caller's own kernel under Nsight Compute, and return what the hardware counters say.

It runs outside the sandbox, with the caller's own rights, because `ncu` has to control the process: it is for your own
code, and no judge uses it. This file is also the program that `ncu` runs:

    ncu … python -m grader.explore.profiling.counted_call EXERCISE FILE CASE
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.bottleneck.counters import METRICS, Counted, counted_in
from grader.bottleneck.evidence import Evidence
from grader.bottleneck.line_counters import by_line
from grader.exercise import Array, Case, Exercise
from grader.exercises import find
from grader.explore.profiling.report_lines import FILE
from grader.hardware import nsight_compute, nsight_modules, toolkit

if TYPE_CHECKING:
    from grader.judge.gpu.ceilings import Machine

_LIMIT_S = 300.0  # an extension may be compiled within it
_LAUNCHES = 32  # that are counted: each is repeated for every group of counters
_SHOWN = 300  # characters of ncu's own message
_REFUSED = (
    "This machine reserves the hardware counters for administrators (ERR_NVGPUCTRPERM). Its administrator can allow "
    "them to all users: load the driver's module with `NVreg_RestrictProfilingToAdminUsers=0`, or start the container "
    "with `--cap-add=SYS_ADMIN`."
)
_MISSING = "Hardware counters were not read: `ncu` (Nsight Compute, part of the CUDA toolkit) was not found."
_NOT_ON_GPU = "Hardware counters were not read: they need an NVIDIA GPU, and a function that passes its cases there."


def count(exercise: Exercise, source: str, gathered: Sequence[Evidence]) -> Counted | str:
    """Count one untimed call of the slowest observed case. If that is not possible, return the reason in a sentence."""
    on_gpu = next((each for each in gathered if not each.simulated and each.runs), None)
    if on_gpu is None:
        return _NOT_ON_GPU
    program = nsight_compute()
    if program is None:
        return _MISSING
    timed = {case.name for case in exercise.timed_cases}
    runs = [run for run in on_gpu.runs if run.case.name in timed] or on_gpu.runs
    case = max(runs, key=lambda run: run.us or 0.0).case
    with tempfile.TemporaryDirectory() as folder:
        path, report = Path(folder, FILE), Path(folder, "report.ncu-rep")
        path.write_text(source, encoding="utf-8")
        options = ["--export", str(report), "--metrics", ",".join(METRICS), "--section", "SourceCounters"]
        options += ["--profile-from-start", "off", "--launch-count", str(_LAUNCHES)]
        options += ["--target-processes", "application-only"]
        words = ["-m", "grader.explore.profiling.counted_call", exercise.id, str(path), case.name]
        printed = run_ncu([str(program), *options], words, folder, _LIMIT_S)
        if not report.exists():
            return _why_not(printed)
        options = ["--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
        table = _run([str(program), *options], folder, _LIMIT_S)
        counted = counted_in(table, case, _LAUNCHES)
        if counted is None:
            return _why_not(printed + table)
        return replace(counted, lines=_lines(program, report, source))


def _lines(program: Path, report: Path, source: str) -> tuple[str, ...]:
    """Return the sentences about single lines; none if the report cannot be read."""
    words = ["-m", "grader.explore.profiling.report_lines", str(report), *map(str, nsight_modules(program))]
    printed = run_ncu([], words, report.parent, _LIMIT_S)
    try:
        return by_line(json.loads(printed.strip().rpartition("\n")[2]), source)
    except ValueError:
        return ()


def _why_not(printed: str) -> str:
    if "ERR_NVGPUCTRPERM" in printed:
        return _REFUSED
    lines = [line.strip() for line in printed.splitlines() if line.strip() and not line.startswith("==PROF==")]
    said = [line for line in lines if line.startswith("==ERROR==")][:1]  # the program's own error is in its last line
    said += [line for line in lines if not line.startswith("==")][-1:]
    return (
        f"Hardware counters were not read. `ncu` said: {' '.join(said or ['nothing']).replace('`', chr(39))[:_SHOWN]}"
    )


def run_ncu(tool: Sequence[str], words: Sequence[str], folder: str | Path, limit_s: float) -> str:
    """Run this Python with `words` under a tool, in a folder, and return what both print, at most 400,000 characters.

    After `limit_s` seconds all of its processes are ended. An empty `tool` runs Python alone.
    """
    return _run([*tool, sys.executable, *words], folder, limit_s)


def _run(command: Sequence[str], folder: str | Path, limit_s: float) -> str:
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    programs = os.path.dirname(sys.executable)  # where pip installs ninja, even if it is not in PATH
    path = os.pathsep.join((programs, os.environ.get("PATH", os.defpath)))
    environment = {**os.environ, **toolkit(os.environ), "PATH": path, "PYTHONPATH": paths, "LC_ALL": "C.UTF-8"}
    printed = Path(folder, "printed.txt")
    with printed.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=folder, env=environment,
                                   start_new_session=True)  # fmt: skip
        try:
            process.wait(timeout=limit_s)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            file.write(f"\n==ERROR== It took longer than {limit_s:.0f} s and was ended.\n")
    return printed.read_text(encoding="utf-8", errors="replace")[-400_000:]


def main(exercise_id: str, path: str, case_name: str) -> None:
    """Make the case's inputs, call twice outside the profiled range to warm up, and once inside it."""
    import torch

    from grader.worker import gpu_start
    from grader.worker.toolchain.compiler_errors import install_line_marks

    gpu_start.start(one_queue=False)
    install_line_marks()
    os.environ["NVCC_APPEND_FLAGS"] = f"{os.environ.get('NVCC_APPEND_FLAGS', '')} -lineinfo"
    for name in ("TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR"):  # cached builds name the notebook's files
        os.environ[name] = str(Path(path).with_name(name))
    exercise = find(exercise_id)
    every = (*exercise.timed_cases, *exercise.plot_cases, *exercise.cases)
    case = next(each for each in every if each.name == case_name)
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    entry, tensors = getattr(module, exercise.entry), inputs_of(exercise, case).values()
    cuda: Any = torch.cuda

    def call() -> None:
        exercise.harness(entry, *tensors) if exercise.harness is not None else entry(*tensors)
        cuda.synchronize()

    call()
    call()
    cuda.cudart().cudaProfilerStart()
    call()
    cuda.cudart().cudaProfilerStop()


def inputs_of(exercise: Exercise, case: Case, device: str = "cuda", machine: Machine | None = None) -> dict[str, Any]:
    """Return new random tensors for all arrays of a case by name, drawn and laid out as in the judge."""
    from grader.judge.checking.buffers import draw, generator

    source = generator(device)
    drawn = {array.name: draw(array, case.fill, source) for array in case.arrays}
    if exercise.draw is not None:
        drawn |= exercise.draw(case, source, machine)
    return {array.name: laid_out(array, drawn[array.name]) for array in case.arrays}


def laid_out(array: Array, values: Any) -> Any:
    """Return the values with the strides that the array has in the judge."""
    from grader.protocol.arena import place

    slot, _ = place("", 0, array.shape, array.dtype, array.row_padding, array.transposed)
    if values.stride() == slot.strides:
        return values
    return values.new_empty(slot.span).as_strided(slot.shape, slot.strides).copy_(values)


if __name__ == "__main__":
    main(*sys.argv[1:])
