"""The description of an exercise: data only, no torch, units in names.

An exercise is one module under `grader/exercises/`; its functions import torch when they are called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

MAX_SOURCE_BYTES = 64_000  # of a solution: Python's parser needs about a hundred times as much memory

FILLS = ("normal", "heavy", "large", "flat", "below", "lowest", "minus_inf")  # drawn by grader.judge.checking.buffers

Tensors = Mapping[str, Any]  # argument name -> torch.Tensor


@dataclass(frozen=True)
class Array:
    """One argument of the entry point: a tensor that the arbiter owns.

    `row_padding` is the number of elements between the end of a row and the start of the next. With padding the tensor
    is not contiguous, and the padding belongs to the guard. `grows` is the axis along which the array of a timed case
    grows with the GPU; with None it does not grow. For matrices and images in CUDA that axis is the width: a grid has
    at most 65,535 blocks in y, and 2³¹ - 1 in x. A `transposed` matrix is stored column by column, with the padding
    between columns.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    role: Literal["in", "out"] = "in"
    row_padding: int = 0
    grows: int | None = 0
    transposed: bool = False

    def times(self, scale: int) -> Array:
        """The same array, `scale` times as long along the axis that grows."""
        if self.grows is None:
            return self
        return replace(self, shape=tuple(n * scale if axis == self.grows else n for axis, n in enumerate(self.shape)))


@dataclass(frozen=True)
class Case:
    """One problem: the arrays, and how to draw the inputs.

    `fill` is one of `FILLS`; "normal|heavy" is one of the two, drawn again for each array of each launch.
    In a `measured` case the exercise's `measure` finds the expected output, with the same inputs on this GPU.
    `budget` replaces the exercise's. A case in which a submission measures has several `tries`, each with its own
    inputs, because the machine may be disturbed. A case with `if_right` runs only if all before it are right.
    """

    name: str
    arrays: tuple[Array, ...]
    fill: str = "normal"
    measured: bool = False
    budget: Budget | None = None
    tries: int = 1
    if_right: bool = False

    def times(self, scale: int) -> Case:
        """The same case, `scale` times as large, with the same name."""
        return replace(self, arrays=tuple(array.times(scale) for array in self.arrays))

    def title(self, scale: int) -> str:
        """The name of the case, and by how much its rows, columns or elements were multiplied for timing."""
        longer = next((array for array in self.arrays if array.grows is not None), None)
        if scale == 1 or longer is None:
            return self.name
        what = "elements" if len(longer.shape) == 1 else "rows" if longer.grows == 0 else "columns"
        return f"{self.name}, {scale} × the {what}"

    @property
    def inputs(self) -> tuple[Array, ...]:
        return tuple(array for array in self.arrays if array.role == "in")

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(array for array in self.arrays if array.role == "out")


@dataclass(frozen=True)
class Budget:
    """The allowed error: |got - expected| <= absolute + relative * |expected|."""

    absolute: float
    relative: float


@dataclass(frozen=True)
class Baseline:
    """A peer to compare times with. The source of `function` runs in a worker, as a submission's does.

    `function` takes the entry point's arguments, imports what it needs and refers to nothing outside itself. `harness`
    calls it if the exercise's own harness would not do.
    """

    id: str
    label: str
    function: Callable[..., None]
    harness: Callable[..., None] | None = None


@dataclass(frozen=True)
class Gate:
    """Points for being at least `at_least` times as fast as a baseline (geometric mean over `cases`).

    `or_share` also passes it: a share of the roofline's speed, for a GPU on which the baseline is already near it.
    """

    baseline: str
    at_least: float
    points: float
    cases: tuple[str, ...]
    or_share: float | None = None


@dataclass(frozen=True)
class Suspect:
    """A known bug: the output of a submission that has it, and the sentence that names it.

    `output` takes the inputs, the "expected" output and the submission's ("got"), all as float64. It returns what the
    buggy code writes, or None if the bug does not show; `relative` is the tolerance of the comparison. If every wrong
    element was never written (it reads as NaN), only suspects that explain what is `missing` are tried. The bug leaves
    the cases that it `spares` correct: a wrong one of these has a different bug. So has a correct one of those that it
    `breaks`.
    """

    sentence: str
    output: Callable[[Tensors], Any]
    relative: float = 1e-3
    missing: bool = False
    spares: tuple[str, ...] = ()  # names of cases, including the simulator's
    breaks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rules:
    """Rules on what a solution may call. A broken rule adds a note for a person, and costs no points."""

    library: tuple[str, ...] = ()  # torch operations that would do the work, without a trailing `_` or `_out`
    handed: bool = False  # whether it passes functions or objects that must be used, not inspected


def text_of(function: Callable[..., Any]) -> str:
    """The source of a baseline or a harness, for a worker to import: it refers to nothing outside itself."""
    return "from typing import Any\n\n\n" + inspect.getsource(function)


@dataclass(frozen=True)
class Exercise:
    """Everything that is known about an exercise; prose and tests read their numbers from here.

    `harness` is for an entry point that does not take the arrays as they are. It is called with the entry point and the
    arrays, within the timed region, for submission and baselines alike. Its source runs in a worker.
    `draw` makes the inputs of a case, by array name, if no fill will do. It takes the case, a torch generator, and
    the arbiter's Machine with its measured ceilings.
    `measure` replaces the entry point, in a trusted worker, to find the expected output of a measured case.
    `of_compiled` says, without a GPU, what a submission lacks that the exercise asks for, or "". It gets the facts that
    `grader/worker/toolchain/nvrtc.py` finds in each kernel, or a harness in each call; they are a worker's claims.
    `lacking` says what GPUs below a compute capability lack, if that puts a gate out of their reach.
    `answers` names the elements of `out` if they are several answers to a question. If an answer is a word, `out` holds
    its number in `answer_words`.
    `limited_by` memory: speed is in GB/s, and the ceiling is a copy's bandwidth. By arithmetic: in TFLOPS, and the
    ceiling is a float16 product's speed. `work` counts the work of a case: speed is then in `work_unit` per second,
    without a ceiling.
    """

    id: str
    title: str
    chapter: str
    notebook: str
    entry: str
    parameters: tuple[str, ...]
    backend: Literal["triton", "cuda", "numba", "cupy", "torch"]
    cases: tuple[Case, ...]
    simulator_cases: tuple[Case, ...]
    timed_cases: tuple[Case, ...]
    plot_cases: tuple[Case, ...]
    oracle: Callable[[Tensors], Any]
    budget: Budget
    bytes_moved: Callable[[Case], int]
    operations: Callable[[Case], int]
    correctness_points: float
    baselines: tuple[Baseline, ...] = ()
    gates: tuple[Gate, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    rules: Rules = Rules()
    harness: Callable[..., None] | None = None
    draw: Callable[[Case, Any, Any], Tensors] | None = None
    measure: Callable[..., Any] | None = None
    of_compiled: Callable[[Sequence[Mapping[str, int]]], str] | None = None
    answers: tuple[str, ...] = ()
    answer_words: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    limited_by: Literal["memory", "arithmetic"] = "memory"
    work: Callable[[Case], int] | None = None
    work_unit: str = ""
    plot_axis: str = "N"
    plot_value: Callable[[Case], int] = field(default=lambda case: case.arrays[0].shape[-1])
    time_limit_s: float = 30.0  # to import the submission, and to build it in its first round
    case_limit_s: float = 15.0  # for one case, without the compilers that it starts; see `run_limit_s`
    round_limit_s: float = 20.0  # for one round of launches
    wall_limit_s: float = 90.0  # for all waits together: import, cases and timing. All limits grow on a slow host
    of_the_host: bool = False  # also time what a call costs the host; if not, calls are queued before the clock starts
    launches: int | None = None  # per timed round, if the bytes moved do not tell how long a launch takes
    changed_by: str = ""  # the file of the class that changed its points, gates or limits
    lacking: tuple[tuple[float, str], ...] = ()
    over_ceiling: float = 1.0  # good work takes at least this many times the ceiling's time: a timed case grows less

    @property
    def max_points(self) -> float:
        return self.correctness_points + sum(gate.points for gate in self.gates)

    def run_limit_s(self, device: str) -> float:
        """The limit for one case once it is built.

        On a GPU, Triton, Numba and NVRTC compile within the process, and so does torch anywhere. There the limit is the
        one for building, because the judge cannot see when that ends.
        """
        apart = self.backend == "cuda" or (device == "simulator" and self.backend != "torch")
        return self.case_limit_s if apart else self.time_limit_s

    @property
    def head_start(self) -> bool:
        """Whether the calls of a round are queued before the clock starts. They are not if the host's time counts, or
        if a submission is given a function to time: its own clock would include the wait for the flag."""
        return not (self.of_the_host or self.answers)

    @property
    def rate_unit(self) -> str:
        """The unit in which speed is reported and plotted."""
        if self.work is not None:
            return f"billion {self.work_unit}/s"
        return "GB/s" if self.limited_by == "memory" else "TFLOPS"

    @property
    def ceiling(self) -> str:
        """The ceiling for a speed's share of the roofline; "" if no measured ceiling fits."""
        if self.work is not None:
            return ""
        return "a copy's bandwidth" if self.limited_by == "memory" else "a float16 product's speed"

    def rate(self, case: Case, gbps: float) -> float:
        """A bandwidth of this case in `rate_unit`."""
        if self.work is not None:
            return gbps * self.work(case) / self.bytes_moved(case)
        if self.limited_by == "memory":
            return gbps
        return gbps * self.operations(case) / self.bytes_moved(case) / 1e3

    def baseline(self, baseline_id: str) -> Baseline:
        return next(b for b in self.baselines if b.id == baseline_id)
