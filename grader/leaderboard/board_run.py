"""A leaderboard run: every submission of a course measured anew, in turn, in one session."""

from __future__ import annotations

import inspect
import stat
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from grader.errors import GraderError, JudgeStopped, MachineLacks, UnusableSubmission
from grader.exercise import Exercise
from grader.exercises import EXERCISES, find
from grader.feedback.summary import to_look_at
from grader.leaderboard.fingerprint import fingerprint
from grader.leaderboard.store import Run, Store
from grader.submission import Submission, from_file
from grader.verdict import Environment, Progress, Verdict
from grader.words import on_one_line

# What was handed in, where, by whom; and how a stranger's name for it is kept as text.

_COURSE_FILE = "nbgrader_config.py"  # in nbgrader's course folders, and no submission


@dataclass(frozen=True)
class Handed:
    """What a student handed in for an exercise: a file, which may be missing, or be none."""

    student: str
    path: Path


def handed_in(course: Path, exercise: Exercise) -> list[Handed]:
    """What was handed in, by student: nbgrader's `submitted/<student>/<chapter>/<notebook>.ipynb` under `course`, or,
    where there is no `submitted` folder, `<student>.py` in `course` itself.

    Raises:
        GraderError: there is no such folder, or nothing was handed in.
    """
    if not course.is_dir():
        raise GraderError(f"There is no folder {course}; name the course's folder with --course.")
    submitted = course / "submitted"
    if submitted.is_dir():
        folders = sorted(path for path in submitted.glob(f"*/{exercise.chapter}") if path.is_dir())
        found = [Handed(text_of(folder.parent.name), folder / f"{exercise.notebook}.ipynb") for folder in folders]
    elif (course / _COURSE_FILE).exists():
        found = []
    else:
        found = [Handed(text_of(path.stem), path) for path in sorted(course.glob("*.py"))]
    if not found:
        raise GraderError(
            f"Nobody has handed in {exercise.id!r} in {course}: there is neither a folder "
            f"submitted/<student>/{exercise.chapter} (`grader classroom autograde` fills it) nor a file "
            "<student>.py."
        )
    return found


def must_be_a_file(path: Path) -> None:
    """Holds what is there to a regular file: a link may lead to another's work, or to what only its reader may read.

    Raises:
        UnusableSubmission: it is a link, or no file. One that is missing passes: the reading says so.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if stat.S_ISLNK(mode):
        raise UnusableSubmission(f"{path} is a link, and links are not followed: hand in the file itself.")
    if not stat.S_ISREG(mode):
        raise UnusableSubmission(f"{path} is not a regular file.")


def text_of(name: object) -> str:
    """A file's name as text that a database can hold, also where it is not UTF-8; of two names, two texts."""
    return str(name).replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


# A leaderboard run: every submission of a course measured anew, in turn, in one session.

_STOPS = (JudgeStopped, MachineLacks)  # where the judge grades a text of ours, the second is about one submission, too
_STOPPED = "The judge stopped twice on this submission; a person has to look."


class Grades(Protocol):
    """What a run needs of a judge."""

    def grade(
        self,
        source: str,
        exercise_id: str,
        *,
        timed: bool = True,
        kernels: bool = False,
        progress: Progress | None = None,
    ) -> Verdict: ...

    def expect(self, submissions: Sequence[tuple[str, str]]) -> None: ...


@dataclass(frozen=True)
class RunOutcome:
    """What a run did. `to_look_at`: sentences for the instructor's eyes, each with the student's name before it."""

    run_id: int
    exercise: str
    gpu: str
    sandbox: str
    resumed: bool
    submissions: int
    measured: int
    shared: int
    already_there: int
    unusable: int
    to_look_at: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return {**asdict(self), "to_look_at": list(self.to_look_at)}

    def as_text(self) -> str:
        """A few lines for a terminal."""
        where = f"on {self.gpu}" if self.gpu else "without a GPU, so none was timed"
        parts = [f"{self.measured} measured"]
        parts += [f"{self.already_there} there from before"] if self.resumed else []
        parts += [f"{self.shared} with the same text as another"] if self.shared else []
        parts += [f"{self.unusable} unusable"] if self.unusable else []
        lines = [f"{self.exercise}, run {self.run_id} {where}: {_count(self.submissions)}: {', '.join(parts)}."]
        lines += [f"Sandbox: {self.sandbox}."] if self.sandbox else []
        lines += ["For a person to look at:", *(f"  {each}" for each in self.to_look_at)] if self.to_look_at else []
        return "\n".join(lines)


class _OtherMachine(Exception):
    """The open run was measured on another machine, or by another grader."""


def run(
    exercise_id: str, course: Path | str, store: Store, judge: Grades, progress: Progress | None = None
) -> RunOutcome:
    """Measures every submission of `exercise_id` in `course` and writes each verdict to `store` as it comes.

    A run that was cut short goes on where it was: what it had measured is not measured again, and who has withdrawn
    since is no longer in it. It is begun anew when the exercise, the grader or the machine has changed since, as the
    times would not compare. A submission on which the judge stops twice waits for a person and keeps nobody else
    waiting, if the judge can still grade a text of ours.

    Raises:
        UnknownExercise: no exercise has this id.
        JudgeStopped, MachineLacks: the judge stops on a text of ours too; the run stays open.
        GraderError: the exercise is not timed, nothing was handed in, or the store cannot be used.
    """
    exercise = find(exercise_id)
    if not exercise.timed_cases:
        timed = ", ".join(each.id for each in EXERCISES.values() if each.timed_cases)
        raise GraderError(f"{exercise_id!r} is not timed, so there is nothing to rank. Those that are: {timed}.")
    handed = handed_in(Path(course), exercise)
    digest = fingerprint(exercise)
    with store.lock():
        current = store.open_run(exercise_id)
        if current is not None and current.fingerprint != digest:
            store.close_run(current.id, "abandoned")
            current = None
        if current is not None:
            try:
                return _Session(store, judge, exercise, current, progress, resumed=True).measure_all(handed)
            except _OtherMachine:
                store.close_run(current.id, "abandoned")
        current = store.start_run(exercise_id, digest)
        return _Session(store, judge, exercise, current, progress, resumed=False).measure_all(handed)


class _Session:
    """One run on its way through the submissions."""

    def __init__(
        self, store: Store, judge: Grades, exercise: Exercise, run: Run, progress: Progress | None, *, resumed: bool
    ) -> None:
        self.store, self.judge, self.exercise, self.run = store, judge, exercise, run
        self.progress, self.resumed = progress, resumed
        self.environment, self.grader = run.environment, run.grader
        self.stopped_on: set[str] = set()  # hashes
        self.to_come: list[str] = []  # sources

    def measure_all(self, handed: list[Handed]) -> RunOutcome:
        counts = {"measured": 0, "shared": 0, "already_there": 0, "unusable": 0}
        self.store.keep_only(self.run.id, {each.student for each in handed})
        entries = self.store.entries(self.run.id)
        there = {entry.student: entry.submission_sha256 for entry in entries}
        self.stopped_on = {entry.submission_sha256 for entry in entries if entry.problem == _STOPPED}
        waiting = []
        for number, each in enumerate(handed):
            self._tell(f"{on_one_line(each.student)}: reading", number, len(handed))
            try:
                must_be_a_file(each.path)
                submission = from_file(each.path, self.exercise.id)
            except Exception as error:  # whatever its text does to the reading, the others' is read
                unread = f"It cannot be read ({type(error).__name__}); a person has to look."
                said = on_one_line(str(error)) if isinstance(error, UnusableSubmission) else unread
                self.store.add_unusable(self.run.id, each.student, text_of(each.path), said)
                counts["unusable"] += 1
                continue
            if there.get(each.student) == submission.sha256:
                counts["already_there"] += 1
            else:
                waiting.append((each, submission))
        self.to_come = list(dict.fromkeys(submission.source for _, submission in waiting))
        for number, (each, submission) in enumerate(waiting, len(handed) - len(waiting)):
            counts[self._enter(each, submission, number, len(handed))] += 1
        self.store.close_run(self.run.id, "finished")
        self._tell("done", len(handed), len(handed))
        return RunOutcome(
            run_id=self.run.id,
            exercise=self.exercise.id,
            gpu=self.environment.gpu if self.environment else "",
            sandbox=self.environment.sandbox if self.environment else "",
            resumed=self.resumed,
            submissions=len(handed),
            to_look_at=tuple(self._to_look_at()),
            **counts,
        )

    def _enter(self, each: Handed, submission: Submission, number: int, total: int) -> str:
        """Writes a student's entry; returns how it came about.

        The same text is measured once and the verdict shared. A second measurement would differ by noise alone: it
        would rank equals apart, and give a text that is handed in under two names two draws.
        """
        verdict, how = self.store.verdict(self.run.id, submission.sha256), "shared"
        if verdict is None and submission.sha256 not in self.stopped_on:
            how, verdict = "measured", self._measure(submission, on_one_line(each.student), number, total)
        if verdict is None:
            self.stopped_on.add(submission.sha256)
            self.store.add_unusable(self.run.id, each.student, text_of(each.path), _STOPPED, submission.sha256)
            return "unusable"
        self.store.add_entry(self.run.id, each.student, text_of(each.path), verdict)
        return how

    def _measure(self, submission: Submission, student: str, number: int, total: int) -> Verdict | None:
        """The verdict; None where the judge stops on this submission and on nothing else."""

        def tell(stage: str, _done: int, _total: int) -> None:
            self._tell(f"{student}: {stage}", number, total)

        self.judge.expect([(source, self.exercise.id) for source in self.to_come])
        self.to_come.remove(submission.source)
        try:
            verdict = self._grade(submission.source, tell)
        except _STOPS:
            self._tell(f"{student}: the judge stopped; is it the machine?", number, total)
            self._grade(_control(self.exercise), tell)
            return None
        if verdict.status != "unusable":
            self._hold_to_one_machine(verdict)
        return verdict

    def _grade(self, source: str, tell: Progress) -> Verdict:
        """The verdict, by the second judge where the first one stops."""
        try:
            return self.judge.grade(source, self.exercise.id, timed=True, kernels=True, progress=tell)
        except _STOPS:
            self.judge.expect([])  # it may have stopped on what it was loading ahead
            return self.judge.grade(source, self.exercise.id, timed=True, kernels=True, progress=tell)

    def _to_look_at(self) -> list[str]:
        found = []
        for entry in self.store.entries(self.run.id):
            said = to_look_at(entry.verdict) if entry.verdict else [entry.problem]
            found += [on_one_line(f"{entry.student}: {sentence}") for sentence in said]
        return found

    def _hold_to_one_machine(self, verdict: Verdict) -> None:
        if self.environment is None:
            self.environment, self.grader = verdict.environment, verdict.grader
        elif (_machine(verdict.environment), verdict.grader) != (_machine(self.environment), self.grader):
            if self.resumed:
                raise _OtherMachine
            raise GraderError(
                f"The machine changed during the run, from {_machine(self.environment)} to "
                f"{_machine(verdict.environment)}; run the command again to measure everything on one."
            )

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)


def _machine(environment: Environment) -> tuple[str, ...]:
    of = environment
    return (of.device, of.gpu, of.driver, of.torch, of.triton, of.sandbox)


def _control(exercise: Exercise) -> str:
    """A submission of ours: the first baseline that is called as submissions are; without one, nothing is done."""
    function = next((each.function for each in exercise.baselines if each.harness is None), None)
    if function is None:
        return f"def {exercise.entry}({', '.join(exercise.parameters)}):\n    pass\n"
    source = inspect.getsource(function)
    return f"from typing import Any\n\n\n{source}\n\n{exercise.entry} = {function.__name__}\n"


def _count(number: int) -> str:
    return "1 submission" if number == 1 else f"{number} submissions"
