"""The worker lists what a call runs: operations of torch in the simulator, and kernels on a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.authoring.stubs import solution
from grader.exercises import EXERCISES
from grader.judge import rules
from tests.forked import ForkServer

pytest.importorskip("torch")
from grader.worker.call_profile import rows_of

RUN = """
import torch
from grader.exercises import find
from grader.worker.call_profile import ran
import submission
exercise, device = find({exercise!r}), {device!r}
case = (exercise.simulator_cases if device == "cpu" else exercise.timed_cases)[-1]
draw = lambda array: (torch.randn if array.role == "in" else torch.empty)(array.shape, device=device)
make = lambda array: draw(array).to(getattr(torch, array.dtype))
arguments = [make(array) for array in case.arrays]
entry = getattr(submission, exercise.entry)
call = lambda: exercise.harness(entry, *arguments) if exercise.harness else entry(*arguments)
if device == "cuda":
    call()  # compiles
import json
print(json.dumps(ran(call)))
"""
LIBRARY = {
    "softmax": "import torch\ndef softmax(x, out): torch.softmax(x, 1, out=out)",
    "vector_add": "def vector_add(x, y, out): out.copy_(x + y)",
    "square_matrix": "def square_matrix(x, out): out[...] = x ** 2",
}
TRITON = [name for name, exercise in EXERCISES.items() if exercise.backend == "triton"]


Rows = Callable[[str, str], list[dict[str, Any]]]


@pytest.fixture
def simulated(fork_server: ForkServer, tmp_path: Path) -> Rows:
    """Runs `ran` on one call of a submission, in a process like a worker's."""

    def run(source: str, exercise: str) -> list[dict[str, Any]]:
        (tmp_path / "submission.py").write_text(source, encoding="utf-8")
        status, output = fork_server.run(RUN.format(exercise=exercise, device="cpu"), tmp_path)
        assert status == 0, output[-3000:]
        return _found(output)

    return run


def _found(output: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output.splitlines()[-1])
    assert all(set(row) == {"name", "count", "microseconds"} for row in found)
    return found


def rows(folder: Path, source: str, exercise: str) -> list[dict[str, Any]]:
    """The same on a GPU."""
    (folder / "submission.py").write_text(source, encoding="utf-8")
    (folder / "script.py").write_text(RUN.format(exercise=exercise, device="cuda"), encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    environment = inherited | {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "TORCH_EXTENSIONS_DIR": str(folder / "built"),
    }
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    return _found(done.stdout)


def test_launches_of_one_kernel_with_one_grid_are_one_row() -> None:
    """A trace of torch's profiler tells the grid, the block, what a thread and a block take, and the occupancy."""
    facts = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 32, "shared memory": 8}
    kernel = {"cat": "kernel", "name": "softmax_kernel", "dur": 60.5, "args": facts | {"est. achieved occupancy %": 75}}
    other = kernel | {"args": facts | {"grid": [1, 1, 1]}, "dur": 2.0}
    copy = {"cat": "gpu_memcpy", "name": "Memcpy DtoD", "dur": 9.0, "args": {"bytes": 64}}
    host = {"cat": "cpu_op", "name": "aten::add", "dur": 500.0}
    found = rows_of({"traceEvents": [host, copy, kernel, other, kernel, {"ph": "M"}]})
    assert [(row["name"], row["count"], row["microseconds"]) for row in found] == [
        ("softmax_kernel", 2, 121.0), ("Memcpy DtoD", 1, 9.0), ("softmax_kernel", 1, 2.0),
    ]  # fmt: skip
    assert (found[0]["grid"], found[0]["block"]) == ([4096, 1, 1], [256, 1, 1])
    assert (found[0]["registers"], found[0]["shared"], found[0]["occupancy_percent"]) == (32, 8, 75)


@pytest.mark.parametrize("exercise", TRITON)
def test_in_the_simulator_the_interpreter_makes_no_noise(simulated, exercise):
    """A Triton kernel lists no operation of torch, though the interpreter uses some, and neither does a print."""
    entry = EXERCISES[exercise].entry
    source = f"{solution(exercise)}\n_solved = {entry}\ndef {entry}(*tensors): print(_solved(*tensors), *tensors)\n"
    assert simulated(source, exercise) == []


@pytest.mark.parametrize("exercise", LIBRARY)
def test_in_the_simulator_the_library_is_named(simulated, exercise):
    """Torch's own computation is listed by its operation, and noted."""
    found = simulated(LIBRARY[exercise], exercise)
    assert [row["count"] for row in found] == [1]
    (note,) = rules.of_kernels(found, EXERCISES[exercise])
    assert found[0]["name"] in note.sentence


def test_what_the_call_raises_passes_through(simulated):
    """A submission fails in the untimed call as in any other."""
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        simulated("def softmax(x, out): 1 / 0", "softmax")


@pytest.mark.gpu
@pytest.mark.timeout(420)
@pytest.mark.parametrize("exercise", LIBRARY)
def test_on_a_gpu_the_references_kernel_is_listed_and_not_noted(tmp_path, exercise):
    """It has the source's name and takes time, and there is no note."""
    source = solution(exercise)
    found = rows(tmp_path, source, exercise)
    assert found, "the profiler saw nothing"
    assert found[0]["name"].partition("(")[0] in source
    assert found[0]["microseconds"] > 1
    assert rules.of_kernels(found, EXERCISES[exercise]) == ()


@pytest.mark.gpu
@pytest.mark.timeout(420)
@pytest.mark.parametrize("exercise", LIBRARY)
def test_on_a_gpu_the_librarys_kernel_is_named(tmp_path, exercise):
    """Torch's own kernel is listed first, and the note has its share of the time."""
    found = rows(tmp_path, LIBRARY[exercise], exercise)
    (note,) = rules.of_kernels(found, EXERCISES[exercise])
    assert "100% of the time" in note.sentence


@pytest.mark.gpu
@pytest.mark.timeout(420)
def test_on_a_gpu_fills_and_scratch_are_not_noted(tmp_path):
    """A solution that clears scratch memory and copies from it still has its own kernel."""
    source = "import torch\n" + solution("vector_add").replace(
        "    n = x.numel()\n", "    n = x.numel()\n    scratch = torch.zeros_like(out)\n    out.copy_(scratch)\n"
    )
    found = rows(tmp_path, source, "vector_add")
    assert len(found) >= 3, found
    assert rules.of_kernels(found, EXERCISES["vector_add"]) == ()
