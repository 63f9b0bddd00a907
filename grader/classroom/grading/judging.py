"""Where the verdicts of a class come from: the store of its course first, then workers.

A forced grading that was interrupted goes on: a file of the course folder names the students that it has left.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.grading.verdict_store import Task, VerdictStore, now
from grader.classroom.grading.workers import Workers
from grader.errors import MachineLacks
from grader.files import write_in_one_step
from grader.verdict import ONLY_PRACTICE, Verdict

_FOLDER = ".regrade"
_current: contextvars.ContextVar[Judging | None] = contextvars.ContextVar("judging", default=None)


class Judging:
    """Judges each text once. Each verdict is stored as soon as it is there, so a killed run loses none.

    `since`: older verdicts do not count (ISO 8601, UTC), for a forced grading. `device_class`: the kind of machine that
    the workers have. `practice_clock`: whether the times of that clock count.
    """

    def __init__(
        self, store: VerdictStore, workers: Workers, device_class: str, since: str = "", practice_clock: bool = False
    ) -> None:
        self._store, self._workers, self._device_class, self._since = store, workers, device_class, since
        self._practice_clock = practice_clock
        self._verdicts: dict[Task, Verdict] = {}  # of this run
        self._missing: set[Task] = set()  # from the store
        workers.keep = self._keep

    def expect(self, tasks: Sequence[Task]) -> None:
        """Announce all tasks to come, in order, to the workers: each text once, and none that has a verdict."""
        self._workers.expect([task for task in dict.fromkeys(tasks) if self._known(task) is None])

    def has(self, tasks: Iterable[Task]) -> bool:
        """Whether all these tasks have a verdict already."""
        return all(self._known(task) is not None for task in tasks)

    def verdict(self, task: Task) -> Verdict:
        """The verdict on a task, as soon as there is one.

        Raises:
            UnknownExercise: no exercise has this id.
            MachineLacks, JudgeStopped: as `Workers.judge`; or only the practice clock works, and it does not count.
        """
        known = self._known(task)
        verdict = self._workers.judge(task) if known is None else known
        if verdict.environment.practice and not self._practice_clock:
            raise MachineLacks(ONLY_PRACTICE)
        return verdict

    def _known(self, task: Task) -> Verdict | None:
        if task not in self._verdicts and task not in self._missing:
            stored = self._store.get(task, self._device_class, self._since, self._practice_clock)
            if stored is None:
                self._missing.add(task)
            else:
                self._verdicts[task] = stored
        return self._verdicts.get(task)

    def _keep(self, task: Task, verdict: Verdict) -> None:
        self._store.put(task, verdict)
        self._verdicts[task] = verdict


def current() -> Judging | None:
    """The judging of the command that runs in this thread, if there is one."""
    return _current.get()


@contextlib.contextmanager
def using(judging: Judging) -> Iterator[None]:
    """Let nbgrader's preprocessors, which nbgrader creates itself, use this judging."""
    token = _current.set(judging)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True)
class Regrade:
    """The students whose work a run judges again; nobody if nothing is forced.

    `since`: verdicts from before do not count (ISO 8601, UTC). `goes_on`: it began in an earlier run. `alone`: it is of
    one student who was named, and is not recorded.
    """

    file: Path
    students: frozenset[str] = frozenset()
    since: str = ""
    goes_on: bool = False
    alone: bool = False

    def start(self) -> None:
        """Record a new grading, once its judges are there, so that it goes on if it is interrupted."""
        if self.students and not (self.goes_on or self.alone):
            _write(self.file, self.since, self.students)

    def done(self, student: str) -> None:
        """Record that a student's work is graded."""
        since, left = _read(self.file)
        if student in left:
            _write(self.file, since, left - {student})


def begin_regrade(course: Path, assignment: str, students: Collection[str], *, force: bool, alone: bool) -> Regrade:
    """The forced grading that a run of an assignment has to do; if an earlier one was interrupted, what it has left.

    `students`: those of this run. `alone`: one student was named, who is not part of the grading of all. Nothing is
    recorded yet.
    """
    file = Path(course) / _FOLDER / f"{assignment}.json"
    since, left = _read(file)
    left = left.intersection(students)
    if force and (alone or not left):
        return Regrade(file, frozenset(students), now(), alone=alone)
    return Regrade(file, left, since, goes_on=True) if left else Regrade(file)


def _read(file: Path) -> tuple[str, frozenset[str]]:
    try:
        found = json.loads(file.read_bytes())
        return str(found["since"]), frozenset(map(str, found["left"]))
    except (OSError, ValueError, KeyError, TypeError):
        return "", frozenset()


def _write(file: Path, since: str, left: Collection[str]) -> None:
    if left:
        file.parent.mkdir(exist_ok=True)
        write_in_one_step(file, json.dumps({"since": since, "left": sorted(left)}))
    else:
        file.unlink(missing_ok=True)
