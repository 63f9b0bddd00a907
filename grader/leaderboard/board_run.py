"""A leaderboard run: find every submission of a course and measure them one after another in one session."""

from __future__ import annotations

import contextlib
import inspect
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.errors import GraderError, JudgeStopped, MachineLacks, UnusableExercise, UnusableSubmission
from grader.exercise import Exercise
from grader.exercises import EXERCISES, find
from grader.feedback.summary import to_look_at
from grader.leaderboard.fingerprint import fingerprint
from grader.leaderboard.standings import REFERENCE
from grader.leaderboard.store import Run, Store
from grader.submission import Submission, from_file
from grader.verdict import ONLY_PRACTICE, Environment, Progress, Verdict
from grader.words import on_one_line, plural

if TYPE_CHECKING:
    from grader.judge.service import Judge

_COURSE_FILE = "nbgrader_config.py"  # in nbgrader's course folders; not a submission
# One submission can cause these; a second one, on our own text, is the machine's or the exercise's.
_STOPS = (JudgeStopped, MachineLacks, UnusableExercise)
_STOPPED = "The judge stopped twice on this submission; look at it yourself."


@dataclass(frozen=True)
class Handed:
    """A student's submitted file for an exercise, which may be missing or not a regular file."""

    student: str
    path: Path


def handed_in(course: Path, exercise: Exercise) -> list[Handed]:
    """The submitted files, by student: `submitted/<student>/<chapter>/<notebook>.ipynb` in `course`.

    If `course` has no `submitted` folder, they are `<student>.py` in `course` itself.

    Raises:
        GraderError: there is no such folder, or no submission.
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
            f"There is no submission of {exercise.id!r} in {course}: neither submitted/<student>/"
            f"{exercise.chapter}, which `grader classroom autograde` fills, nor <student>.py."
        )
    return found


@dataclass(frozen=True)
class Deadline:
    """The deadline for the work of a run: ISO 8601 in UTC, or empty.

    `late` are the students whose newest work is late, each with the folder of the last work on time, or None.
    """

    due: str = ""
    late: Mapping[str, Path | None] = field(default_factory=dict)

    def on_time(self, handed: list[Handed]) -> list[Handed]:
        """The work that counts."""
        folders = {each.student: self.late.get(each.student, each.path.parent) for each in handed}
        found = [(each, folders[each.student]) for each in handed]
        return [replace(each, path=folder / each.path.name) for each, folder in found if folder is not None]


def must_be_a_file(path: Path) -> None:
    """Refuse links, which may lead to another student's work, and special files. A missing file is reported later.

    Raises:
        UnusableSubmission: the path is a link, or not a regular file.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if stat.S_ISLNK(mode):
        raise UnusableSubmission(f"{path} is a link, and links are not followed: submit the file itself.")
    if not stat.S_ISREG(mode):
        raise UnusableSubmission(f"{path} is not a regular file.")


def text_of(name: object) -> str:
    """A file's name as text that a database can store, even if it is not UTF-8; different names stay different."""
    return str(name).replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run. `to_look_at` has sentences for the instructor, each preceded by the student's name."""

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
        return asdict(self)

    def as_text(self) -> str:
        """A few lines for a terminal."""
        where = f"on {self.gpu}" if self.gpu else "without a GPU, so nothing was timed"
        parts = [f"{self.measured} measured"]
        parts += [f"{self.already_there} measured before"] if self.resumed else []
        parts += [f"{self.shared} with the same text as another"] if self.shared else []
        parts += [f"{self.unusable} unusable"] if self.unusable else []
        submissions = plural(self.submissions, "submission")
        lines = [f"{self.exercise}, run {self.run_id} {where}: {submissions}: {', '.join(parts)}."]
        lines += [f"Sandbox: {self.sandbox}."] if self.sandbox else []
        lines += ["Look at:", *(f"  {each}" for each in self.to_look_at)] if self.to_look_at else []
        return "\n".join(lines)


class _OtherMachine(Exception):
    """The open run was begun on another machine, or by another version of the grader."""


def run(
    exercise_id: str, course: Path | str, store: Store, judge: Judge, progress: Progress | None = None,
    practice_clock: bool = False, deadline: Deadline = Deadline(),
) -> RunOutcome:  # fmt: skip
    """Measure every submission of `exercise_id` in `course`, and write each verdict to `store` at once.

    If a student's newest work missed the `deadline`, the last work on time is measured, if there is any.

    An interrupted run continues where it stopped, without students who have withdrawn. If the exercise, the grader or
    the machine has changed since, a new run begins, because the times would not be comparable. A submission on which
    the judge stops twice is left to the instructor if the judge can still grade a control, and the run continues.

    Raises:
        UnknownExercise: no exercise has this id.
        JudgeStopped, MachineLacks: the judge stops on the control too; the run stays open.
        MachineLacks: only the practice clock works here, and `practice_clock` does not allow it.
        GraderError: the exercise is not timed, there is no submission, or the store cannot be used.
    """
    exercise = find(exercise_id)
    if not exercise.timed_cases:
        timed = ", ".join(each.id for each in EXERCISES.values() if each.timed_cases)
        raise GraderError(f"{exercise_id!r} is not timed, so it cannot be ranked. Timed exercises: {timed}.")
    handed = deadline.on_time(handed_in(Path(course), exercise))
    reference = Path(course) / "source" / exercise.chapter / f"{exercise.notebook}.ipynb"
    digest = fingerprint(exercise)

    def measured(run: Run, *, resumed: bool) -> RunOutcome:
        store.set_due(run.id, deadline.due)
        session = _Session(store, judge, exercise, run, progress, practice_clock, resumed=resumed)
        return session.measure_all(handed, reference)

    with store.lock():
        current = store.open_run(exercise_id)
        if current is not None and current.fingerprint == digest:
            with contextlib.suppress(_OtherMachine):
                return measured(current, resumed=True)
        if current is not None:
            store.close_run(current.id, "abandoned")
        return measured(store.start_run(exercise_id, digest), resumed=False)


class _Session:
    """The state of a run that is going through the submissions."""

    def __init__(
        self, store: Store, judge: Judge, exercise: Exercise, run: Run, progress: Progress | None,
        practice_clock: bool, *, resumed: bool,
    ) -> None:  # fmt: skip
        self.store, self.judge, self.exercise, self.run = store, judge, exercise, run
        self.progress, self.practice_clock, self.resumed = progress, practice_clock, resumed
        self.environment, self.grader = run.environment, run.grader
        timed = [each.verdict for each in store.entries(run.id) if each.verdict is not None and each.verdict.timings]
        # Whether the practice clock times this run; None: nothing was timed yet.
        self.practice = timed[0].environment.practice if timed else None
        self.stopped_on: set[str] = set()  # hashes
        self.to_come: list[str] = []  # sources

    def measure_all(self, handed: list[Handed], reference: Path) -> RunOutcome:
        counts = {"measured": 0, "shared": 0, "already_there": 0, "unusable": 0}
        self.store.keep_only(self.run.id, {REFERENCE, *(each.student for each in handed)})
        entries = self.store.entries(self.run.id)
        there = {entry.student: entry.submission_sha256 for entry in entries}
        self.stopped_on = {entry.submission_sha256 for entry in entries if entry.problem == _STOPPED}
        waiting = []
        for number, each in enumerate(handed):
            self._tell(f"{on_one_line(each.student)}: reading", number, len(handed))
            try:
                must_be_a_file(each.path)
                submission = from_file(each.path, self.exercise.id)
            except Exception as error:  # one unreadable file must not keep the others from being measured
                unread = f"It cannot be read ({type(error).__name__}); look at it yourself."
                problem = on_one_line(str(error)) if isinstance(error, UnusableSubmission) else unread
                self.store.add_unusable(self.run.id, each.student, text_of(each.path), problem)
                counts["unusable"] += 1
                continue
            if there.get(each.student) == submission.sha256:
                counts["already_there"] += 1
            else:
                waiting.append((each, submission))
        self.to_come = list(dict.fromkeys(submission.source for _, submission in waiting))
        for number, (each, submission) in enumerate(waiting, len(handed) - len(waiting)):
            counts[self._enter(each, submission, number, len(handed))] += 1
        self._enter_reference(reference, there.get(REFERENCE), len(handed))
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
        """Write a student's entry; return the count that it adds to.

        Equal texts are measured once and share the verdict. A second measurement would differ only by noise, and would
        give a text that is submitted under two names two chances.
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

    def _enter_reference(self, notebook: Path, measured: str | None, total: int) -> None:
        """Measure the solution in the course's own notebook, which the board shows without a rank."""
        if not notebook.is_file():
            return
        try:
            submission = from_file(notebook, self.exercise.id)
        except UnusableSubmission:
            return  # the instructor's own notebook, without a solution
        if submission.sha256 != measured:
            self.to_come.append(submission.source)
            self._enter(Handed(REFERENCE, notebook), submission, total, total)

    def _measure(self, submission: Submission, student: str, number: int, total: int) -> Verdict | None:
        """The verdict; None if the judge stops on this submission but not on the control."""

        def tell(stage: str, _done: int, _total: int) -> None:
            self._tell(f"{student}: {stage}", number, total)

        self.judge.expect([(source, self.exercise.id) for source in self.to_come])
        self.to_come.remove(submission.source)
        try:
            verdict = self._grade(submission.source, tell)
        except _STOPS:
            self._tell(f"{student}: the judge stopped; checking the machine", number, total)
            self._grade(_control(self.exercise), tell)
            return None
        if verdict.environment.practice and not self.practice_clock:
            raise MachineLacks(ONLY_PRACTICE)
        if verdict.status != "unusable":
            self._require_same_machine(verdict)
        return verdict

    def _grade(self, source: str, tell: Progress) -> Verdict:
        """The verdict, from a second attempt if the first judge stops."""
        try:
            return self.judge.grade(source, self.exercise.id, timed=True, kernels=True, progress=tell)
        except _STOPS:
            self.judge.expect([])  # loading the next submissions may have stopped it
            return self.judge.grade(source, self.exercise.id, timed=True, kernels=True, progress=tell)

    def _to_look_at(self) -> list[str]:
        found = []
        for entry in self.store.entries(self.run.id):
            if entry.student == REFERENCE:
                continue
            sentences = to_look_at(entry.verdict) if entry.verdict else [entry.problem]
            found += [on_one_line(f"{entry.student}: {sentence}") for sentence in sentences]
        return found

    def _require_same_machine(self, verdict: Verdict) -> None:
        if verdict.timings:
            practice = verdict.environment.practice
            if self.practice is not None and self.practice != practice:
                if self.resumed:
                    raise _OtherMachine
                raise GraderError(
                    "The practice clock timed only a part of the run; run the command again to measure everything by "
                    "one clock."
                )
            self.practice = practice
        if self.environment is None:
            self.environment, self.grader = verdict.environment, verdict.grader
        elif (machine_of(verdict.environment), verdict.grader) != (machine_of(self.environment), self.grader):
            if self.resumed:
                raise _OtherMachine
            raise GraderError(
                f"The machine changed during the run, from {machine_of(self.environment)} to "
                f"{machine_of(verdict.environment)}; run the command again to measure everything on one."
            )

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)


def machine_of(environment: Environment) -> tuple[str, ...]:
    """The facts about a machine that must be the same for times to be comparable."""
    return tuple(getattr(environment, name) for name in ("device", "gpu", "driver", "torch", "triton", "sandbox"))


def _control(exercise: Exercise) -> str:
    """The control, a submission that is known to work: a baseline, or a function that does nothing."""
    function = next((each.function for each in exercise.baselines if each.harness is None), None)
    if function is None:
        return f"def {exercise.entry}({', '.join(exercise.parameters)}):\n    pass\n"
    source = inspect.getsource(function)
    return f"from typing import Any\n\n\n{source}\n\n{exercise.entry} = {function.__name__}\n"
