"""`grader exercise budget`: the error of an exercise's reference against its oracle, and a budget ten times as wide.

A budget allows |got - expected| <= absolute + relative * |expected|. Both numbers come from the worst element.
The relative one is from the elements that are at least as large as the case's median, the absolute one from the
remaining error of the smaller elements. A tenth of the budget therefore covers every measured element.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from grader.authoring.new_exercise import exercise_cells
from grader.errors import GraderError
from grader.exercise import Budget, Case, Exercise
from grader.exercises import find, found
from grader.verdict import Progress

if TYPE_CHECKING:
    from grader.judge.bench import Bench
    from grader.judge.process.worker import Worker

_FACTOR = 10  # room for a different order of summation, GPU or compiler version
_DRAWS = 3  # of the inputs of each case
_MANY = 5  # a case is named if the budget without it would be this many times as tight
_LEAST = 1e-30  # below the smallest float32, so that a result that underflows to 0 is right


@dataclass(frozen=True)
class CaseError:
    """The reference's worst errors in one case, over all draws; `own_budget` if the case has its own budget.

    `small` is the error of the elements below the median, beyond `relative` times their size.
    """

    case: str
    worst: float
    relative: float
    small: float
    integer: bool
    own_budget: bool = False


@dataclass(frozen=True)
class MeasuredBudget:
    """A budget to paste, and the errors that it comes from. `device` is the GPU's name, or "the simulator"."""

    exercise: str
    device: str
    draws: int
    now: Budget
    budget: Budget
    cases: tuple[CaseError, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def to_text(self) -> str:
        """A table of the cases, and the line to paste."""
        wide = max(len(each.case) for each in self.cases)
        lines = [f"{self.exercise} on {self.device}: the reference's worst errors, {self.draws} draws per case"]
        lines.append(f"  {'case':{wide}}      worst   relative   absolute, beyond the relative part")
        for each in self.cases:
            own = f"  needs its own budget={_text(_budget([each]))}" if each.own_budget else ""
            lines.append(f"  {each.case:{wide}}  {each.worst:>9.2g}  {each.relative:>9.2g}  {each.small:>9.2g}{own}")
        lines.append(f"Now: {_text(self.now)}. {_FACTOR} times the worst relative and absolute errors:")
        lines.append(f"    budget={_text(self.budget)},")
        if stands_out := _stands_out(self.cases):
            lines.append(
                f"Most of that is due to {stands_out}: give that case milder inputs or its own budget, and the "
                "others can have a tighter one."
            )
        if self.device == "the simulator":
            lines.append("A GPU rounds differently: run this again on one before you release the exercise.")
        return "\n".join(lines)


def measure_budget(
    exercise_id: str,
    *,
    device: Literal["auto", "cuda", "simulator"] = "auto",
    course: Path | None = None,
    progress: Progress | None = None,
) -> MeasuredBudget:
    """Run the reference over all cases, on the GPU or in the simulator, and compare it with the oracle.

    Raises:
        UnknownExercise: there is no such exercise.
        SourceError: its notebook has no reference.
        GraderError: the exercise's answers are measured, or the reference fails or is not finite where it should be.
        UnusableExercise: the oracle or a suspect fails.
        MachineLacks: something that grading needs is missing on this machine.
    """
    from grader.judge.bench import Bench

    if course is not None:
        found.use(course)
    exercise = find(exercise_id)
    if exercise.measure is not None:
        raise GraderError(
            f"The answers of {exercise_id!r} are times on this machine: rounding does not tell how far off they may be."
        )
    source = exercise_cells(exercise).reference
    tell = progress or (lambda text, done, total: None)
    tell("starting the judge", 0, 0)
    bench = Bench(device)
    try:
        errors = errors_of(bench, source, exercise, tell)
        where = bench.machine.gpu if bench.device == "cuda" else "the simulator"
    finally:
        bench.close()
    return MeasuredBudget(exercise_id, where or bench.device, _DRAWS, exercise.budget, _budget(errors), tuple(errors))


def errors_of(bench: Bench, source: str, exercise: Exercise, progress: Progress) -> list[CaseError]:
    """The worst errors of `source` in every case.

    Raises:
        GraderError: it fails, or is not finite where it should be.
        UnusableExercise: the oracle or a suspect fails.
    """
    from grader.judge.process.worker import WorkerFailed

    cases = exercise.cases if bench.device == "cuda" else exercise.simulator_cases
    loaded = bench.take(source, exercise)
    try:
        if loaded.failure is not None:
            raise WorkerFailed(loaded.failure)
        loaded.worker.in_turn()
        loaded.worker.map(bench.buffers)
        found = []
        for number, case in enumerate(cases):
            progress(f"measuring {case.name}", number, len(cases))
            draws = [_error(bench, loaded.worker, exercise, case) for _ in range(_DRAWS)]
            worst = {name: max(getattr(each, name) for each in draws) for name in ("worst", "relative", "small")}
            found.append(replace(draws[0], **worst))
    except WorkerFailed as failed:
        raise GraderError(f"The reference of {exercise.id!r} fails: {failed.failure.message}") from None
    finally:
        loaded.worker.close()
    return found


def _error(bench: Bench, worker: Worker, exercise: Exercise, case: Case) -> CaseError:
    """One draw: the reference in a worker, as a submission is run, and the oracle on the same inputs."""
    buffers = bench.buffers
    layout = buffers.lay(case)
    buffers.fill(layout, exercise.draw)
    buffers.poison(layout)
    worker.plan(layout)
    limit_s = bench.machine.slowness * exercise.time_limit_s
    worker.round("submission", buffers, limit_s, exercise.head_start)
    (outputs,), (expected,) = buffers.answers(layout), buffers.expected(layout, exercise)
    worst = relative = small = 0.0
    for array, got, answer in zip(case.outputs, outputs, expected, strict=True):
        right = (got == answer) | (answer.isfinite() & got.isfinite())
        if not bool(right.all()):
            raise GraderError(
                f"The reference of {exercise.id!r} is wrong: in {array.name!r} of {case.name} it is not finite where "
                "the oracle is, or the other way round. `grader check` says more."
            )
        keep = answer.isfinite()
        size, error = answer[keep].abs(), (got - answer)[keep].abs()
        if size.numel() == 0:
            continue
        ordinary = (size >= size.median()) & (size > 0)
        ratio = float((error[ordinary] / size[ordinary]).max()) if bool(ordinary.any()) else 0.0
        worst, relative = max(worst, float(error.max())), max(relative, ratio)
        small = max(small, float((error - ratio * size).max()))
    buffers.try_suspects(layout, exercise)
    integer = not all(array.dtype.startswith(("float", "bfloat")) for array in case.outputs)
    return CaseError(case.name, worst, relative, small, integer, case.budget is not None)


def _budget(errors: list[CaseError]) -> Budget:
    counted = [each for each in errors if not each.own_budget] or errors
    worst, relative, small = (max(getattr(each, name) for each in counted) for name in ("worst", "relative", "small"))
    if any(each.integer for each in counted):
        return Budget(0.5 if worst <= 0.5 else math.ceil(worst), 0.0)  # exact after rounding, if possible
    if worst == 0:
        return Budget(0.0, 0.0)  # values are moved, not computed
    return Budget(max(_rounded_up(_FACTOR * small), _LEAST), _rounded_up(_FACTOR * relative))


def _stands_out(errors: tuple[CaseError, ...]) -> str:
    """The name of the one case that makes the budget many times as wide, or nothing."""
    counted = [each for each in errors if not each.own_budget]
    whole = _budget(counted) if counted else Budget(0.0, 0.0)
    for each in counted if len(counted) > 1 else []:
        rest = _budget([other for other in counted if other is not each])
        if rest.absolute * _MANY <= whole.absolute and rest.relative * _MANY <= whole.relative:
            return each.case if whole.relative else ""
    return ""


def _rounded_up(value: float) -> float:
    """The value rounded up to one digit."""
    if value <= 0:
        return 0.0
    digit = math.floor(math.log10(value))
    return float(f"{math.ceil(round(value / 10.0**digit, 6))}e{digit}")


def _text(budget: Budget) -> str:
    return f"Budget(absolute={budget.absolute:g}, relative={budget.relative:g})"
