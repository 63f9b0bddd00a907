"""Where the verdicts of a class come from: the store of its course first, then workers."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence

from grader.classroom.grading.verdict_store import Task, VerdictStore
from grader.classroom.grading.workers import Workers
from grader.errors import MachineLacks
from grader.verdict import ONLY_PRACTICE, Verdict

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
