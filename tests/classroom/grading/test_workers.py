"""Tests of grader.classroom.grading.workers: each task once, and a judge that stops costs a retry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from grader.classroom.grading.verdict_store import Task
from grader.classroom.grading.workers import SideBySide, side_by_side
from grader.errors import ClassroomError, JudgeStopped, UnusableExercise
from grader.hardware import Gpu
from grader.verdict import Environment, Verdict


def verdict_on(source: str, **changes: Any) -> Verdict:
    """A verdict whose digest is the text itself."""
    fields = {
        "exercise": "softmax", "title": "Softmax", "status": "passed", "points": 4.0, "max_points": 10.0,
        "reachable_points": 4.0, "submission_sha256": source, "environment": Environment("simulator"),
    }  # fmt: skip
    return Verdict(**(fields | changes))


class FakeJudge:
    """Answers after `gate`, if it has one; raises the errors of `errors` first."""

    def __init__(self, gate: threading.Barrier | None = None, errors: tuple[Exception, ...] = ()) -> None:
        self.gate, self.errors, self.judged = gate, list(errors), [""]
        self.judged.clear()
        self.interrupted = threading.Event()
        self.closed = False

    def expect(self, submissions: list[tuple[str, str]]) -> None:
        pass

    def grade(self, source: str, exercise_id: str, *, timed: bool, kernels: bool) -> Verdict:
        if source == "endless":
            self.interrupted.wait()
            raise JudgeStopped("The judge was ended.")
        if self.gate is not None:
            self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.judged.append(source)
        return verdict_on(source)

    def with_why(self, verdict: Verdict, source: str) -> Verdict:
        return replace(verdict, log=f"why {source}")

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        self.closed = True


@contextmanager
def pool(*judges: FakeJudge) -> Iterator[SideBySide]:
    made: Any = SideBySide(judges)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.close()


def test_judges_work_at_the_same_time() -> None:
    """Two judges that wait for each other both end, so neither waits for the other's verdict."""
    gate = threading.Barrier(2)
    judges = [FakeJudge(gate), FakeJudge(gate)]
    tasks = [Task(text, "softmax") for text in "abcd"]
    with pool(*judges) as workers:
        kept: dict[Task, Verdict] = {}
        workers.keep = kept.__setitem__
        workers.expect(tasks)
        assert [workers.judge(task).submission_sha256 for task in tasks] == list("abcd")
    assert [kept[task].log for task in tasks] == ["why a", "why b", "why c", "why d"]  # which is kept as well
    assert sorted(judges[0].judged + judges[1].judged) == list("abcd")
    assert {len(judge.judged) for judge in judges} == {2}
    assert set(kept) == set(tasks)
    assert all(judge.closed for judge in judges)


def test_a_judge_gets_the_task_that_it_loads() -> None:
    """However many tasks the other judge takes meanwhile: the loading would be in vain."""
    three, go_on = threading.Event(), threading.Event()

    class Announced(FakeJudge):
        def __init__(self) -> None:
            super().__init__()
            self.announced: list[list[str]] = []

        def expect(self, submissions: list[tuple[str, str]]) -> None:
            self.announced.append([source for source, _ in submissions])

    class Slow(Announced):
        def grade(self, source: str, exercise_id: str, **asked: bool) -> Verdict:
            three.wait()
            if len(self.judged) == 1:
                go_on.set()
            return super().grade(source, exercise_id, **asked)

    class Quick(Announced):
        def grade(self, source: str, exercise_id: str, **asked: bool) -> Verdict:
            if len(self.judged) == 3:
                three.set()
                go_on.wait()
            return super().grade(source, exercise_id, **asked)

    slow, quick = Slow(), Quick()
    with pool(slow, quick) as workers:
        tasks = [Task(text, "softmax") for text in "abcdefgh"]
        workers.expect(tasks)
        assert [workers.judge(task).submission_sha256 for task in tasks] == list("abcdefgh")
    assert slow.announced[0] == slow.judged[:2]
    assert quick.announced[0] == quick.judged[:2]


def test_a_task_is_judged_once() -> None:
    """Announcing or requesting a task again gives the same verdict."""
    judge, task = FakeJudge(), Task("a", "softmax")
    with pool(judge) as workers:
        workers.expect([task, task])
        assert workers.judge(task) is workers.judge(task)
    assert judge.judged == ["a"]


def test_a_judge_that_stops_is_asked_again() -> None:
    """One lost judge costs a retry; two in a row are an error of this task only, which may be tried again."""
    stopped = JudgeStopped("The judge stopped.")
    judge = FakeJudge(errors=(stopped, stopped, stopped))
    with pool(judge) as workers:
        with pytest.raises(JudgeStopped):
            workers.judge(Task("a", "softmax"))
        assert workers.judge(Task("b", "softmax")).submission_sha256 == "b"
        assert workers.judge(Task("a", "softmax")).submission_sha256 == "a"


def test_a_task_that_cannot_even_be_announced_stops_nobody() -> None:
    """An exercise module that breaks during a run is an error of its tasks, and the judge takes the next one."""

    class Announced(FakeJudge):
        def expect(self, submissions: list[tuple[str, str]]) -> None:
            if submissions and submissions[0][0] == "broken":
                raise UnusableExercise("The module fails.")

    with pool(Announced()) as workers:
        with pytest.raises(UnusableExercise):
            workers.judge(Task("broken", "softmax"))
        assert workers.judge(Task("a", "softmax")).submission_sha256 == "a"


def test_closing_ends_a_running_judge() -> None:
    """Ctrl-C does not wait for an endless submission, and starts none of the tasks that are left."""
    judge = FakeJudge()
    with pool(judge) as workers:
        workers.expect([Task("endless", "softmax"), Task("b", "softmax")])
    assert judge.interrupted.is_set()
    assert judge.judged == []


def test_closing_ends_a_judge_that_is_about_to_start() -> None:
    """Its process did not exist yet at the first interrupt, so that it would judge to the end."""

    class Starting(FakeJudge):
        def __init__(self) -> None:
            super().__init__()
            self.begun, self.interrupts = threading.Event(), 0

        def grade(self, source: str, exercise_id: str, *, timed: bool, kernels: bool) -> Verdict:
            self.begun.set()
            return super().grade(source, exercise_id, timed=timed, kernels=kernels)

        def interrupt(self) -> None:
            self.interrupts += 1
            if self.interrupts > 1:
                super().interrupt()

    judge = Starting()
    with pool(judge) as workers:
        workers.expect([Task("endless", "softmax")])
        judge.begun.wait()
    assert judge.interrupts > 1
    assert judge.closed


def test_side_by_side_on_one_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges that share a GPU would disturb each other's timings."""
    monkeypatch.setattr("grader.classroom.grading.verdict_store.gpus", lambda: (Gpu("H200"),))
    with pytest.raises(ClassroomError, match="disturb each other's timings"):
        side_by_side(2, (), "auto", sandbox=False)


@pytest.mark.parametrize(("indices", "words"), [((0, 2), "has 2 GPUs"), ((1, 1), "once"), ((0, 1), "different models")])
def test_gpus_that_cannot_be_used_together(
    monkeypatch: pytest.MonkeyPatch, indices: tuple[int, ...], words: str
) -> None:
    """A missing GPU, the same one twice, and two models are refused before anything is judged."""
    monkeypatch.setattr("grader.classroom.grading.workers.gpus", lambda: (Gpu("H100"), Gpu("H200")))
    with pytest.raises(ClassroomError, match=words):
        side_by_side(1, indices, "auto", sandbox=False)


def test_each_judge_sees_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs count as this process sees them: the second of "2,5" is 5."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    monkeypatch.setattr("grader.classroom.grading.workers.gpus", lambda: (Gpu("H200"), Gpu("H200")))
    workers = side_by_side(1, (1, 0), "auto", sandbox=False)
    workers.close()
    assert [judge._variables(None) for judge in workers._judges] == [
        {"CUDA_VISIBLE_DEVICES": "5"},
        {"CUDA_VISIBLE_DEVICES": "2"},
    ]
