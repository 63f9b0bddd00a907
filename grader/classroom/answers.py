"""The results of the `grader classroom` commands, as JSON and as text."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

from grader.words import count, in_points, plural


@dataclass(frozen=True)
class Result:
    """The result of a command; `warnings` are sentences. `ok` is False if part of what was requested failed."""

    @property
    def ok(self) -> bool:
        return True

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return {**asdict(self), "ok": self.ok}

    def to_text(self) -> str:
        """Lines for a terminal, without a newline at the end."""
        raise NotImplementedError


@dataclass(frozen=True)
class InitResult(Result):
    """A course folder. The paths of the folder and the exchange are absolute; files are relative to the folder."""

    course: str
    course_id: str
    exchange: str
    created: tuple[str, ...]
    kept: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()  # of the kept: this version has a newer one

    def to_text(self) -> str:
        kept = f"; {count(len(self.kept))} existing kept" if self.kept else ""
        updated = f"; {count(len(self.updated))} brought up to date" if self.updated else ""
        every = (*self.created, *self.kept, *self.updated)
        assignments = sorted({name.split("/")[1] for name in every if name.startswith("source/")})
        lines = [
            f"Course {self.course_id} in {self.course}: {plural(len(self.created), 'file')} created{updated}{kept}.",
            *(f"Edited, so not brought up to date: {name}" for name in self.edited),
            f"Exchange: {self.exchange}",
            f"Assignments: {', '.join(assignments)}",
        ]
        following = f"Next: grader classroom release {shlex.quote(self.course)} {(*assignments, 'ASSIGNMENT')[0]}"
        return "\n".join([*lines, *_notes(self.warnings), following])


@dataclass(frozen=True)
class ReleaseResult(Result):
    """An assignment in the exchange, and what this call did."""

    assignment: str
    outcome: Literal["released", "replaced", "unchanged"]
    notebooks: tuple[str, ...]
    path: str
    warnings: tuple[str, ...] = ()

    def to_text(self) -> str:
        said = {
            "released": "is released",
            "replaced": "is released again; learners who have fetched it keep the old version",
            "unchanged": "is already released and has not changed",
        }[self.outcome]
        lines = [f"{self.assignment} {said}: {', '.join(self.notebooks)}", f"Exchange: {self.path}"]
        return "\n".join([*lines, *_notes(self.warnings)])


@dataclass(frozen=True)
class StudentResult:
    """One student's work. `score` includes late penalties; `reason` says why it failed or was not graded.

    `to_look_at` are sentences for the instructor; the judge's begin with the exercise's title. `unmeasured` are the
    points, on the exercises' own scale, that were out of reach because speed was not measured.
    """

    student: str
    outcome: Literal["graded", "unchanged", "failed"]
    score: float
    max_score: float
    needs_manual_grade: bool = False
    seconds_late: float = 0.0
    submitted_at: str = ""
    reason: str = ""
    to_look_at: tuple[str, ...] = ()
    unmeasured: float = 0.0


@dataclass(frozen=True)
class AutogradeResult(Result):
    """The outcome of collecting, grading and writing feedback."""

    assignment: str
    collected: int
    students: tuple[StudentResult, ...]
    feedback: Literal["none", "written", "released"]
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(student.outcome == "failed" or student.reason for student in self.students)

    def to_text(self) -> str:
        if not self.students:
            return "\n".join([f"Nobody has submitted {self.assignment} yet.", *_notes(self.warnings)])
        lines = [f"{self.assignment}: {self.collected} collected, {plural(len(self.students), 'submission')}"]
        for student in self.students:
            notes = [
                "unchanged, not graded again" if student.outcome == "unchanged" else "",
                f"{timedelta(seconds=round(student.seconds_late))} late" if student.seconds_late else "",
                "to grade by hand" if student.needs_manual_grade else "",
                student.reason,
            ]
            points = "failed" if student.outcome == "failed" else f"{student.score:g} of {student.max_score:g}"
            lines.append(f"  {student.student:<20} {points:<10} {'; '.join(note for note in notes if note)}".rstrip())
            lines += [f"    {sentence}" for sentence in student.to_look_at]
        said = {"none": "Feedback: not written", "written": "Feedback: written, not released", "released": ""}
        lines.append(said[self.feedback] or "Feedback: released to the learners")
        unmeasured = [student for student in self.students if student.unmeasured]
        if unmeasured:
            most = max(student.unmeasured for student in unmeasured)
            lines.append(
                f"Note: speed was not measured, so {plural(len(unmeasured), 'student')} could not get up to "
                f"{in_points(most)}; grade again with --force on a machine with a GPU"
            )
        return "\n".join([*lines, *_notes(self.warnings)])


@dataclass(frozen=True)
class Rescored:
    """One student's points and maximum before and after; `penalty` is what late work costs now."""

    student: str
    before: float
    max_before: float
    after: float
    max_after: float
    penalty: float = 0.0
    problem: str = ""


@dataclass(frozen=True)
class RescoreResult(Result):
    """The outcome of rescoring an assignment. `students` are all whose work is graded."""

    assignment: str
    students: tuple[Rescored, ...]

    @property
    def ok(self) -> bool:
        return not any(student.problem for student in self.students)

    def to_text(self) -> str:
        changed = [s for s in self.students if (s.before, s.max_before) != (s.after, s.max_after) or s.problem]
        graded = plural(len(self.students), "student")
        lines = [f"{self.assignment}: {graded} rescored, {count(len(changed))} changed"]
        for student in changed:
            points = f"{student.before:g} of {student.max_before:g} → {student.after:g} of {student.max_after:g}"
            late = f"{student.penalty:g} deducted for late work" if student.penalty else ""
            notes = "; ".join(filter(None, [late, student.problem]))
            lines.append(f"  {student.student:<20} {points} {notes}".rstrip())
        return "\n".join(lines)


@dataclass(frozen=True)
class AssignmentStatus:
    """The state of an assignment. `waiting` counts the submissions in the exchange that are not collected yet."""

    assignment: str
    released: bool
    waiting: int
    collected: int
    graded: int
    needs_manual_grade: int
    average_score: float | None
    max_score: float


@dataclass(frozen=True)
class StatusResult(Result):
    """A course and its assignments; `problems` are sentences that say what to fix."""

    course: str
    course_id: str
    exchange: str
    assignments: tuple[AssignmentStatus, ...]
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_text(self) -> str:
        lines = [f"Course {self.course_id} in {self.course}", f"Exchange: {self.exchange}"]
        if self.assignments:
            lines.append(
                f"  {'assignment':<22} {'released':<9} {'new':>4} {'collected':>10} {'graded':>7} {'average':>12}"
            )
        for each in self.assignments:
            average = "" if each.average_score is None else f"{each.average_score:.1f} of {each.max_score:g}"
            manual = f"  {each.needs_manual_grade} to grade by hand" if each.needs_manual_grade else ""
            lines.append(
                f"  {each.assignment:<22} {'yes' if each.released else 'no':<9} {each.waiting:>4} {each.collected:>10} "
                f"{each.graded:>7} {average:>12}{manual}".rstrip()
            )
        return "\n".join([*lines, *(f"Problem: {problem}" for problem in self.problems)])


def _notes(warnings: tuple[str, ...]) -> list[str]:
    return [f"Note: {warning}" for warning in warnings]
