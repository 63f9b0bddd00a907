"""Release, grade and look at a course in one process each; idempotent, and clear where nbgrader is silent."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import warnings
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from grader.classroom import course_folder as folder
from grader.classroom import inbox
from grader.classroom.answers import AssignmentStatus, AutogradeResult, ReleaseResult, StatusResult, StudentResult
from grader.classroom.new_course import init
from grader.classroom.settings import CONFIG_FILE
from grader.classroom.student_feedback import write_feedback
from grader.errors import ClassroomError
from grader.feedback.summary import to_look_at
from grader.submission import submissions_in
from grader.verdict import Progress, Verdict
from grader.words import on_one_line

__all__ = ["autograde", "init", "release", "status", "uncollected"]

_NOT_GRADED = re.compile(r"\] (\S+: not graded: .*)")  # what grader.classroom.preprocessor logs


def release(course: Path, assignment: str, *, force: bool = False) -> ReleaseResult:
    """Generate the learners' version of an assignment and put it into the exchange.

    Nothing changes where the exchange holds the same version. Another version is only replaced with `force`. A release
    that is refused changes neither the gradebook nor `release/`: the version is generated in a scratch folder first,
    and for good once it is in the exchange. One that is cut short in between is completed by the next call.

    Raises:
        ClassroomError: no such assignment, nbgrader refused it, or another version is released.
    """
    api = folder.api(course)
    folder.refuse_unknown(api, assignment)
    with folder.rehearsal(api):
        _generate(api, assignment)
        made = folder.path(api, "release", assignment)
        notebooks = tuple(path.name for path in sorted(made.glob("*.ipynb")))
        outcome = _into_exchange(api, assignment, made, force)
    _generate(api, assignment)
    return ReleaseResult(
        assignment,
        outcome,
        notebooks,
        str(folder.outbound(api, assignment)),
        tuple(folder.exchange_problems(api)) if outcome != "unchanged" else (),
    )


def _generate(api: Any, assignment: str) -> None:
    folder.must(api.generate_assignment(assignment, force=True), f"{assignment} cannot be generated")
    folder.bring_exercises(api, assignment)


def _into_exchange(api: Any, assignment: str, made: Path, force: bool) -> Literal["released", "replaced", "unchanged"]:
    """Puts the version at `made` into the exchange, unless it is there or may not replace the one that is."""
    outbound = folder.outbound(api, assignment)
    replaces = outbound.is_dir()
    if replaces:
        differing = folder.differences(made, outbound)
        if not differing:
            return "unchanged"
        if not force:
            raise ClassroomError(
                f"Another version of {assignment} is released already; it differs in {', '.join(differing)}. "
                "Replace it with --force: learners who have fetched it keep what they have."
            )
        api.config.ExchangeReleaseAssignment.force = True
    folder.must(api.release_assignment(assignment), f"{assignment} cannot be released")
    return "replaced" if replaces else "released"


def autograde(
    course: Path,
    assignment: str,
    *,
    student: str | None = None,
    force: bool = False,
    feedback: bool = True,
    release_feedback: bool = False,
    sandbox: bool = True,
    accept: Collection[str] = (),
    progress: Progress | None = None,
) -> AutogradeResult:
    """Collect what was submitted, have it judged, and write feedback.

    A student is graded where the submission is new, where it could not be judged the last time, or with `force`. One
    whose work cannot be graded does not keep the others waiting. Without `sandbox` a submission can do on this machine
    whatever its user can. In the names in `accept`, what another user put into the exchange is collected, too, and when
    it was handed in is believed.

    Raises:
        ClassroomError: no such assignment or student, or the assignment was never released.
        MachineLacks: there is no sandbox on this machine, and it is not waived.
    """
    from grader.judge.sandbox import must_be_caged

    tell = progress or (lambda text, done, total: None)
    api = folder.api(course)
    folder.refuse_unknown(api, assignment)
    if sandbox:
        must_be_caged()
    else:
        api.config.JudgeCells.sandbox = False
    if not folder.in_gradebook(api, assignment):
        raise ClassroomError(
            f"{assignment} is not in the gradebook yet: run `grader classroom release {shlex.quote(str(course))} "
            f"{assignment}` first."
        )
    tell("collecting", 0, 1)
    collected, warnings = inbox.collect(api, assignment, accept)
    students = sorted(api.get_submitted_students(assignment))
    if student is not None and student not in students:
        raise ClassroomError(f"{student} has not submitted {assignment}; {len(students)} others have.")
    students = [student] if student is not None else students
    done = folder.graded(api, assignment)
    again = [n for n in students if force or n not in done or folder.waits_for_judge(api, assignment, n)]
    own = folder.notebooks(api, assignment)
    handed_in = {name: _handed_in(folder.path(api, "submitted", assignment, name), own) for name in again}
    results = []
    for number, name in enumerate(students):
        reason = ""
        if name in handed_in:
            tell(f"grading {name}", number, len(students))
            _look_ahead(api, [pair for pairs in handed_in.values() for pair in pairs])
            reason = _grade(api, assignment, name)
            del handed_in[name]
        results.append(_student_result(api, assignment, name, name in again, reason))
    wrote: Literal["none", "written", "released"] = "none"
    if feedback and results:
        tell("writing feedback", len(students), len(students))
        kept = {name: write_feedback(api, assignment, name, release=release_feedback) for name in students}
        results = [replace(r, reason="; ".join(filter(None, [r.reason, kept[r.student]]))) for r in results]
        if any(said is not None for said in kept.values()):
            wrote = "released" if release_feedback and "" in kept.values() else "written"
    if not sandbox:
        warnings.append("submissions ran without a sandbox, as --no-sandbox asks")
    warnings += folder.exchange_problems(api)
    return AutogradeResult(assignment, collected, tuple(results), wrote, tuple(warnings))


def status(course: Path) -> StatusResult:
    """How far each assignment of a course is, and what is in the way.

    Raises:
        ClassroomError: `course` is no course folder.
    """
    api = folder.api(course)
    problems = folder.exchange_problems(api)
    released = api.get_released_assignments()
    rows = []
    for name in sorted(api.get_source_assignments()):
        graded = sorted(folder.graded(api, name)) if folder.in_gradebook(api, name) else []
        results = [_student_result(api, name, student, again=False, reason="") for student in graded]
        rows.append(
            AssignmentStatus(
                assignment=name,
                released=name in released,
                waiting=inbox.waiting(api, name),
                collected=len(api.get_submitted_students(name)),
                graded=len(graded),
                needs_manual_grade=sum(result.needs_manual_grade for result in results),
                average_score=sum(result.score for result in results) / len(results) if results else None,
                max_score=float((api.get_assignment(name, released) or {}).get("max_score") or 0.0),
            )
        )
    if not rows:
        problems.append(f"there is no assignment in {Path(api.coursedir.root) / api.coursedir.source_directory}")
    return StatusResult(str(api.coursedir.root), api.course_id, api.exchange_root, tuple(rows), tuple(problems))


def uncollected(course: Path, assignment: str) -> int:
    """How many students' newer submissions of an assignment wait in the exchange; 0 where nobody can say."""
    if not (course / CONFIG_FILE).is_file():
        return 0
    try:
        return inbox.waiting(folder.api(course), assignment)
    except Exception:  # nbgrader is not installed, its gradebook is locked: a hint must not fail what it stands beside
        return 0


def _grade(api: Any, assignment: str, student: str) -> str:
    """Autograde one student's work; why it could not be graded in full, or nothing."""
    from nbgrader.utils import capture_log, temp_attrs

    from grader.classroom.nbgrader_apps import GradeReadable

    begun = folder.begun(api, assignment, student)
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.touch()
    submitted = folder.path(api, "submitted", assignment, student)
    with temp_attrs(api.coursedir, assignment_id=assignment, student_id=student), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nbformat about the learner's file, of SQLAlchemy 2.1 about nbgrader 0.9.6
        app = GradeReadable(coursedir=api.coursedir, parent=api)
        app.force, app.create_student = True, True
        result = capture_log(app)
    failure = folder.why(result)
    begun.unlink(missing_ok=True)
    if not failure:
        not_graded = map(on_one_line, _NOT_GRADED.findall(result.get("log") or ""))
        said = [folder.not_read(api, assignment, student), *not_graded]
        return "; ".join(filter(None, said))
    shutil.rmtree(folder.path(api, "autograded", assignment, student), ignore_errors=True)  # of an earlier submission
    if not any(submitted.glob("*.ipynb")):
        return on_one_line(f"There is no notebook in {submitted}.")
    return next(iter(folder.unreadable(submitted).values()), failure)


def _handed_in(submitted: Path, own: set[str]) -> list[tuple[str, str]]:
    """Source and exercise id of what a student's notebooks solve, in the order in which nbgrader comes to them."""
    found = []
    for notebook in (submitted / f"{name}.ipynb" for name in sorted(own)):
        with contextlib.suppress(Exception):  # it is read again in its turn, and then it is said what is wrong with it
            found += [(each.source, each.exercise_id) for each in submissions_in(notebook)]
    return found


def _look_ahead(api: Any, to_come: list[tuple[str, str]]) -> None:
    """Tells the judge what nbgrader, which sees one notebook at a time, will have it grade."""
    from grader.classroom.preprocessor import JudgeCells

    JudgeCells(config=api.config).judge.expect(to_come)


def _verdicts(autograded: Path) -> tuple[list[Verdict], list[str]]:
    """A student's, without those that another version of the grader wrote; and which notebooks cannot be read.

    We wrote them ourselves, so they are read whatever their size: else who hands in much would hide the findings.
    """
    found, problems = [], []
    for notebook in sorted(autograded.glob("*.ipynb")):
        try:
            cells = list(json.loads(notebook.read_bytes())["cells"])
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            said = (
                f"what the judge found cannot be read in {notebook} ({type(error).__name__}): grade again with --force"
            )
            problems.append(said)
            continue
        for cell in cells:
            with contextlib.suppress(KeyError, TypeError):
                found.append(Verdict.from_dict(cell["metadata"]["grader"]["verdict"]))
    return found, problems


def _student_result(api: Any, assignment: str, student: str, again: bool, reason: str) -> StudentResult:
    from nbgrader.api import MissingEntry

    when = inbox.submitted_at(api, assignment, student)
    autograded = folder.path(api, "autograded", assignment, student)
    if reason and not autograded.is_dir():
        return StudentResult(student, "failed", 0.0, 0.0, submitted_at=when, reason=reason)
    with api.gradebook as gradebook:
        try:
            entry = gradebook.find_submission(assignment, student)
        except MissingEntry:
            return StudentResult(student, "failed", 0.0, 0.0, submitted_at=when, reason=reason or "not graded")
        verdicts, unread = _verdicts(autograded)
        said = [f"{verdict.title}: {sentence}" for verdict in verdicts for sentence in to_look_at(verdict)]
        others = inbox.other_notebooks(api, assignment, student)
        said = [sentence for sentence in (folder.missing(api, assignment, student, others), *unread, *said) if sentence]
        penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in entry.notebooks)
        return StudentResult(
            student=student,
            outcome="graded" if again else "unchanged",
            score=max(0.0, float(entry.score) - penalty),
            max_score=float(entry.max_score),
            needs_manual_grade=bool(entry.needs_manual_grade),
            seconds_late=float(entry.total_seconds_late or 0.0),
            submitted_at=when,
            reason=reason or folder.not_read(api, assignment, student),
            to_look_at=tuple(map(on_one_line, said)),
            unmeasured=sum(verdict.max_points - verdict.reachable_points for verdict in verdicts),
        )
