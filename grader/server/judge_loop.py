"""The process that judges what is in the queue, one job at a time, and watches the exchange.

Between two runs of the leaderboard it enters each new verdict at once, and publishes the pages again.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grader.classroom import class_actions, inbox
from grader.classroom import course_folder as folder
from grader.classroom.grading.verdict_store import is_transient
from grader.classroom.preprocessor import JudgeCells
from grader.classroom.run_log import alone
from grader.classroom.term import due_dates
from grader.errors import GraderError, JudgeStopped, MachineLacks, UnusableSubmission
from grader.exercises import EXERCISES, find
from grader.feedback.report import as_text
from grader.leaderboard.board_actions import STORE_NAME
from grader.leaderboard.board_run import machine_of, text_of
from grader.leaderboard.fingerprint import fingerprint
from grader.leaderboard.site import publish
from grader.leaderboard.store import Run, Store
from grader.server.job_queue import MOST_TRIES, Answer, Job, JobQueue
from grader.verdict import Verdict
from grader.words import harmless, in_points, on_one_line, points

_IDLE_S, _BUSY_S = 0.2, 1.0
_FOR_POINTS = "This was for practice and for the leaderboard. For points, submit the notebook from the Assignment List."
_LATE = "The due date has passed: this was for practice, and changes neither points nor the leaderboard."
_ORIGIN = "grader classroom serve"  # of an entry on the leaderboard
_AHEAD = 4  # texts that the judge loads while it judges one


@dataclass(frozen=True)
class Settings:
    """How the jobs of a course are judged. `watch_s` is how often to look into the exchange; 0: never."""

    course: Path
    sandbox: bool = True
    practice_clock: bool = False
    watch_s: float = 10.0


class JudgeLoop:
    """Judges the jobs of a queue with the judge of this process. `tell` gets a line per job."""

    def __init__(self, settings: Settings, queue: JobQueue, board: LiveBoard, tell: Callable[[str], None]) -> None:
        self._settings, self._queue, self._board, self._tell = settings, queue, board, tell
        self._api: Any = folder.api(settings.course)
        self._api.config.JudgeCells.sandbox = settings.sandbox
        if settings.practice_clock:
            self._api.config.JudgeCells.practice_clock = True
        self._watched_at = -settings.watch_s
        self._has_released, self._problem = False, ""

    def run(self) -> None:
        """Judge until the process ends. While it judges, no other command measures in this course."""
        while True:
            self.watch()
            if self._queue.waiting():
                with self._alone():
                    while self.judge_next():
                        self._on_board(self._board.publish)
                        self.watch()
            self._on_board(self._board.publish)
            time.sleep(_IDLE_S)

    def judge_next(self) -> bool:
        """Judge the next job; return whether there was one."""
        job = self._queue.claim()
        if job is None:
            return False
        try:
            answer, final = self._text(job) if job.kind == "text" else self._work(job)
        except UnusableSubmission as error:
            answer, final = Answer(status="unusable", report=str(error)), True
        except Exception as error:
            is_known = isinstance(error, GraderError)
            may_pass = isinstance(error, JudgeStopped | MachineLacks) or "database is locked" in str(error)
            if may_pass and job.tries < MOST_TRIES:
                self._tell(f"{job.student} {job.exercise}: will be judged again, because: {on_one_line(str(error))}")
                self._queue.give_back(job.key)
                return True
            if not is_known:
                traceback.print_exc()
            said = str(error) if is_known else f"The grader failed ({type(error).__name__}): tell your instructor."
            answer, final = Answer(problem=on_one_line(said)), False
        answer = replace(answer, report=harmless(answer.report))  # JSON in UTF-8 cannot hold every text
        self._queue.finish(job.key, answer, final=final)
        result = answer.problem or f"{answer.status}, {points(answer.points)} of {in_points(answer.max_points)}"
        self._tell(f"{job.student} {job.exercise}: {result}; {self._queue.waiting()} waiting")
        return True

    def watch(self) -> None:
        """Enter the work from the exchange that is not graded yet, if it is time to look."""
        if not self._settings.watch_s or time.monotonic() - self._watched_at < self._settings.watch_s:
            return
        try:
            problem = self._enter_work()
        except Exception as error:  # the exchange's files and the gradebook may be busy or broken for a moment
            problem = f"The exchange cannot be read now ({type(error).__name__}: {error})."
        if problem != self._problem:
            self._tell(problem or "The exchange can be read again.")
            self._problem = problem
        self._watched_at = time.monotonic()

    def _enter_work(self) -> str:
        """Enter the work that is not graded yet; return a sentence if the exchange is gone or was emptied."""
        root = Path(self._api.exchange_root)
        if folder.has_exchange_folder(self._api) and not root.is_dir():
            return f"The exchange {root} is missing: put it back, or create it with `grader classroom init`."
        released = self._api.get_released_assignments()
        for chapter in released:
            if folder.in_gradebook(self._api, chapter):
                for student, when in inbox.ungraded(self._api, chapter).items():
                    self._queue.enter_work(student, chapter, when)
        self._has_released = self._has_released or bool(released)
        if self._has_released and not released:
            return f"The exchange {root} has no assignment any more: put its files back, or release them again."
        return ""

    def _text(self, job: Job) -> tuple[Answer, bool]:
        task = JudgeCells(config=self._api.config).task
        with class_actions.opened_judging(self._api) as judges:
            upcoming = self._queue.upcoming(_AHEAD)
            ahead = [task(each.source, each.exercise) for each in upcoming if each.exercise in EXERCISES]
            judges.expect([task(job.source, job.exercise), *ahead])
            verdict = judges.verdict(task(job.source, job.exercise))
        if not math.isfinite(verdict.points):
            raise JudgeStopped("The judge gave no points; this is a bug in the grader.")
        when = datetime.fromtimestamp(job.accepted_at, UTC).replace(tzinfo=None)
        counts = self._enter(job.student, verdict, EXERCISES[job.exercise].chapter, when)
        report = f"{as_text(verdict, job.source)}\n\n{_FOR_POINTS if counts else _LATE}"
        return Answer(verdict.status, verdict.points, verdict.max_points, report), not is_transient(verdict)

    def _work(self, job: Job) -> tuple[Answer, bool]:
        """Collect and grade what a student handed in, and release the feedback, as `grader classroom autograde`.

        If a busy machine may be the reason for the outcome, the work is marked, so that `watch` enters it again.
        """
        done = class_actions.autograde(
            self._settings.course,
            job.exercise,
            student=job.student,
            release_feedback=True,
            sandbox=self._settings.sandbox,
            practice_clock=self._settings.practice_clock,
        )
        (result,) = done.students
        autograded = folder.path(self._api, "autograded", job.exercise, job.student)
        verdicts, _ = class_actions.graded_verdicts(autograded)
        when = folder.timestamp(self._api.coursedir, job.exercise, job.student)
        for verdict in verdicts:
            self._enter(job.student, verdict, job.exercise, when or datetime.min)
        report = result.reason or "Graded: fetch the feedback."
        final = not (result.reason or any(map(is_transient, verdicts)))
        if not final and job.tries < MOST_TRIES:
            folder.begun(self._api, job.exercise, job.student).touch()
            self._tell(f"{job.student} {job.exercise}: will be graded again, because a busy machine may be the reason")
        return Answer(result.outcome, result.score, result.max_score, report), final

    def _enter(self, student: str, verdict: Verdict, chapter: str, when: datetime) -> bool:
        """Enter a verdict on work that was submitted at `when`; return whether it was on time, so that it counts."""
        due, latest = due_dates.deadline(self._api, chapter, student)
        if latest is not None and when > latest:
            return False
        self._on_board(functools.partial(self._board.enter, student, verdict, due))
        return True

    def _on_board(self, change: Callable[[], None]) -> None:
        """Change the leaderboard; if that fails, learners still get their verdicts."""
        try:
            change()
        except Exception as error:
            if not isinstance(error, GraderError):
                traceback.print_exc()
            self._tell(f"The leaderboard is not up to date: {error}")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other command of this course use the GPU meanwhile; wait until those that do have ended."""
        with alone(self._settings.course, wait=True), contextlib.ExitStack() as held:
            said = ""
            while True:
                try:
                    held.enter_context(self._board.store.lock())
                    break
                except GraderError as error:
                    if str(error) != said:
                        said = str(error)
                        self._tell(said)
                    time.sleep(_BUSY_S)
            yield


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


def judge_process(settings: Settings, queue_file: Path, site: Path) -> None:
    """The body of the process. It ends with its parent, and only one runs in a course."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with (queue_file.parent / "judge.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # a killed server's process may need a moment to end
        queue = JobQueue(queue_file)
        if again := queue.resume():
            _say(f"{again} resumed")
        JudgeLoop(settings, queue, LiveBoard(settings.course, site), _say).run()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _say(line: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {on_one_line(line)}", flush=True)
