"""Shared fixtures: verdicts to order, a judge that hands them out, and a course folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from grader.exercises import find
from grader.verdict import CaseResult, Environment, Failure, Finding, GateResult, Timing, Verdict

GPU = "NVIDIA H100 80GB HBM3"


def make_verdict(
    source: str = "def softmax(x, out): ...",
    exercise_id: str = "softmax",
    *,
    speed: float | None = 1.5,
    spread: float = 0.01,
    wrong: int = 0,
    failure: Failure | None = None,
    status: str | None = None,
    gpu: str = GPU,
    clock: str = "the arbiter's",
    findings: tuple[Finding, ...] = (),
    **environment: Any,
) -> Verdict:
    """A verdict with `speed` times the first baseline's, give or take `spread`; without `gpu`, a simulator's."""
    exercise = find(exercise_id)
    cases = exercise.cases if gpu else exercise.simulator_cases
    timings: list[Timing] = []
    gates: list[GateResult] = []
    if gpu and speed and not wrong and (not failure or failure.kind == "implausible"):
        for number, case in enumerate(exercise.timed_cases):
            base = 100.0 * (number + 1)
            for peer, time in (("submission", base / speed), (exercise.baselines[0].id, base)):
                ends = (time * (1 - spread / 2), time * (1 + spread / 2))
                share = 0.6 * speed if peer == "submission" else 0.6
                timings.append(Timing(case.name, peer, time, *ends, 3000 * share, share, 7, 32))
        for gate in exercise.gates:
            ratio = (speed, speed * (1 - spread), speed * (1 + spread))
            label = exercise.baseline(gate.baseline).label
            gates.append(GateResult(gate.baseline, label, gate.at_least, "passed", gate.points, gate.points, *ratio))
    where: dict[str, Any] = {"driver": "580.95", "torch": "2.13.0", "triton": "3.7.1"}
    return Verdict(
        exercise=exercise_id,
        title=exercise.title,
        status=status or ("failed" if wrong or failure else "passed"),  # type: ignore[arg-type]
        points=1.0,
        max_points=exercise.max_points,
        reachable_points=exercise.max_points,
        submission_sha256=hashlib.sha256(source.encode()).hexdigest(),
        environment=Environment(device="cuda" if gpu else "simulator", gpu=gpu, **{**where, **environment}),
        cases=tuple(CaseResult(case.name, number >= wrong) for number, case in enumerate(cases)),
        gates=tuple(gates),
        timings=tuple(timings),
        failure=failure,
        findings=findings,
        clock=clock,
        grader="0.1.0",
    )


class FakeJudge:
    """Gives each source its verdict, or raises its error, and records its calls; `on_grade` may raise, too."""

    def __init__(self, verdict_of: Callable[[str], Verdict] = make_verdict) -> None:
        self.verdict_of = verdict_of
        self.graded: list[str] = []
        self.expected: list[list[str]] = []
        self.errors: dict[str, type[BaseException]] = {}
        self.on_grade: Callable[[str], None] = lambda source: None

    def expect(self, submissions: Sequence[tuple[str, str]]) -> None:
        self.expected.append([source for source, _ in submissions])

    def grade(
        self, source: str, exercise_id: str, *, timed: bool = True, kernels: bool = False, progress: Any = None
    ) -> Verdict:
        assert timed
        self.graded.append(source)
        self.on_grade(source)
        if source in self.errors:
            raise self.errors[source]("gone")
        if progress is not None:
            progress("timing", 1, 3)
        return self.verdict_of(source)


@pytest.fixture
def verdict() -> Callable[..., Verdict]:
    return make_verdict


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge()


def softmax_text(note: str) -> str:
    return f"# {note}\ndef softmax(x, out):\n    ..."


@pytest.fixture
def text_of() -> Callable[[str], str]:
    """The source of a softmax that differs from others by a note."""
    return softmax_text


@pytest.fixture
def notebook() -> Callable[[str], str]:
    """A notebook's JSON with one solution cell for softmax."""

    def make(source: str) -> str:
        cell = {
            "cell_type": "code",
            "id": "softmax",
            "metadata": {"nbgrader": {"grade_id": "softmax", "solution": True}},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    return make


@pytest.fixture
def course(tmp_path: Path, notebook: Callable[[str], str]) -> Callable[[dict[str, str | None]], Path]:
    """Create nbgrader's `submitted` folder from student → source (None: the chapter without the notebook)."""

    def make(sources: dict[str, str | None]) -> Path:
        for student, source in sources.items():
            folder = tmp_path / "course" / "submitted" / student / "03_triton"
            folder.mkdir(parents=True, exist_ok=True)
            if source is not None:
                (folder / "03_fuse_a_softmax.ipynb").write_text(notebook(source), encoding="utf-8")
        return tmp_path / "course"

    return make
