"""The leaderboard between two runs: each new verdict is entered at once, and the pages are published again."""

from __future__ import annotations

import time
from pathlib import Path

from grader.exercises import EXERCISES, find
from grader.leaderboard.board_actions import STORE_NAME
from grader.leaderboard.board_run import machine_of, text_of
from grader.leaderboard.fingerprint import fingerprint
from grader.leaderboard.site import publish
from grader.leaderboard.store import Run, Store
from grader.verdict import Verdict

_ORIGIN = "grader classroom serve"


class LiveBoard:
    """Enters verdicts into a course's store, and publishes its site to a folder at most every `every_s` seconds.

    A verdict joins the newest finished run of its exercise if that was measured on the same machine by the same
    version. Otherwise it begins a run, so times of different GPU models are never ranked together.
    `grader leaderboard run` then measures everybody in one session, in a new run.
    """

    def __init__(self, course: Path, site: Path, every_s: float = 5.0) -> None:
        """Open the store, and publish what it holds.

        Raises:
            GraderError: the store cannot be used, or the site not be written.
        """
        self.store = Store(Path(course) / STORE_NAME)
        self._site, self._every_s = site, every_s
        self._looked_at, self._changed = 0.0, True
        self._names: object = None
        self.publish(now=True)

    def enter(self, student: str, verdict: Verdict, due: str = "") -> None:
        """Give a student's entry this verdict, if the exercise is timed and there is something to rank.

        `due` is the deadline for the board's work.
        """
        exercise = EXERCISES.get(verdict.exercise)
        if exercise is None or not exercise.timed_cases or verdict.status == "unusable":
            return
        digest = fingerprint(find(verdict.exercise))
        run = self._run_for(verdict, digest) or self.store.start_run(verdict.exercise, digest)
        self.store.add_entry(run.id, text_of(student), _ORIGIN, verdict, newest=True)
        self.store.set_due(run.id, due)
        self.store.close_run(run.id, "finished")  # with today's date
        self._changed = True

    def publish(self, *, now: bool = False) -> None:
        """Write the pages if an entry or a name is new; `now`, or else only some seconds after the last time."""
        if not now and time.monotonic() - self._looked_at < self._every_s:
            return
        self._looked_at = time.monotonic()  # also if publishing fails
        names = self.store.hidden(), self.store.pseudonyms()
        if self._changed or names != self._names:
            publish(self.store, self._site)
            self._changed, self._names = False, names

    def _run_for(self, verdict: Verdict, digest: str) -> Run | None:
        for run in self.store.finished_runs():
            if (run.exercise, run.fingerprint) == (verdict.exercise, digest) and run.environment is not None:
                same = machine_of(run.environment) == machine_of(verdict.environment)
                if same and run.grader == verdict.grader and run.environment.practice == verdict.environment.practice:
                    return run
        return None
