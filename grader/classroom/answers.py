"""What the classroom's commands answer: frozen, JSON-able, and readable as text."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Result:
    """An answer. `ok` is False where something that was asked for could not be done."""

    @property
    def ok(self) -> bool:
        return True

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, text and numbers, ready for `json.dumps`."""
        return {**asdict(self), "ok": self.ok}

    def to_text(self) -> str:
        """Several lines for a person, without a newline at the end."""
        raise NotImplementedError


@dataclass(frozen=True)
class InitResult(Result):
    """A course folder. Paths are absolute for the folder and the exchange, relative to the folder for files."""

    course: str
    course_id: str
    exchange: str
    created: tuple[str, ...]
    kept: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def to_text(self) -> str:
        kept = f"; {len(self.kept)} that were there are as they were" if self.kept else ""
        assignments = sorted({name.split("/")[1] for name in (*self.created, *self.kept) if name.startswith("source/")})
        return "\n".join(
            [
                f"Course {self.course_id} in {self.course}: {len(self.created)} files made{kept}.",
                f"Exchange: {self.exchange}",
                f"Assignments: {', '.join(assignments)}",
                *(f"Note: {warning}" for warning in self.warnings),
                f"Next: grader classroom release {shlex.quote(self.course)} {(*assignments, 'ASSIGNMENT')[0]}",
            ]
        )


@dataclass(frozen=True)
class ReleaseResult(Result):
    """An assignment in the exchange. `outcome` says what this call did about it."""

    assignment: str
    outcome: Literal["released", "replaced", "unchanged"]
    notebooks: tuple[str, ...]
    path: str
    warnings: tuple[str, ...] = ()

    def to_text(self) -> str:
        said = {
            "released": "is released",
            "replaced": "is released anew; who has fetched it keeps the old version",
            "unchanged": "was released already, and nothing in it has changed",
        }[self.outcome]
        lines = [f"{self.assignment} {said}: {', '.join(self.notebooks)}", f"Exchange: {self.path}"]
        return "\n".join([*lines, *(f"Note: {warning}" for warning in self.warnings)])


@dataclass(frozen=True)
class StudentResult:
    """One student's work. `score` is after late penalties; `reason` says why it failed or was not graded.

    `to_look_at`: sentences; what the judge found beside the score begins with the exercise's title. `unmeasured`: the
    points, on the exercises' own scale, that could not be had, as speed was not measured.
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
    """What a run of collecting, grading and writing feedback did."""

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
            lines = [f"Nobody has submitted {self.assignment} yet."]
            return "\n".join([*lines, *(f"Note: {warning}" for warning in self.warnings)])
        lines = [f"{self.assignment}: {self.collected} collected, {len(self.students)} submissions"]
        for student in self.students:
            notes = [
                "not graded again, nothing new" if student.outcome == "unchanged" else "",
                f"{student.seconds_late / 3600:.1f} h late" if student.seconds_late else "",
                "waits for a person" if student.needs_manual_grade else "",
                student.reason,
            ]
            points = "failed" if student.outcome == "failed" else f"{student.score:g} of {student.max_score:g}"
            lines.append(f"  {student.student:<20} {points:<10} {'; '.join(note for note in notes if note)}".rstrip())
            lines += [f"    {sentence}" for sentence in student.to_look_at]
        said = {"none": "Feedback: not written", "written": "Feedback: written, not released", "released": ""}
        lines.append(said[self.feedback] or "Feedback: released to the learners")
        unmeasured = [student for student in self.students if student.unmeasured]
        if unmeasured:
            who = "1 student" if len(unmeasured) == 1 else f"{len(unmeasured)} students"
            most = max(student.unmeasured for student in unmeasured)
            lines.append(
                f"Note: speed was not measured, so {who} could not have up to {most:g} points; grade anew with --force "
                "on a machine with a GPU"
            )
        return "\n".join([*lines, *(f"Note: {warning}" for warning in self.warnings)])


@dataclass(frozen=True)
class AssignmentStatus:
    """How far an assignment is. `waiting`: submissions in the exchange that were not collected."""

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
    """A course and its assignments; `problems` are sentences that say what to mend."""

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
            manual = f"  {each.needs_manual_grade} wait for a person" if each.needs_manual_grade else ""
            lines.append(
                f"  {each.assignment:<22} {'yes' if each.released else 'no':<9} {each.waiting:>4} {each.collected:>10} "
                f"{each.graded:>7} {average:>12}{manual}".rstrip()
            )
        return "\n".join([*lines, *(f"Problem: {problem}" for problem in self.problems)])
