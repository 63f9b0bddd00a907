"""The `grader classroom` commands: create a course, release and autograde assignments, report their status."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from grader.classroom import course_folder as folder
from grader.classroom import inbox
from grader.classroom.answers import AssignmentStatus, AutogradeResult, ReleaseResult, StatusResult, StudentResult
from grader.classroom.grading import judging, verdict_store
from grader.classroom.grading.judging import Judging, Regrade
from grader.classroom.grading.verdict_store import Task
from grader.classroom.grading.workers import ThisProcess, Workers, side_by_side
from grader.classroom.new_course import init
from grader.classroom.run_log import run_log
from grader.classroom.settings import CONFIG_FILE
from grader.classroom.student_feedback import write_all
from grader.errors import ClassroomError
from grader.feedback.summary import to_look_at
from grader.submission import submissions_in
from grader.verdict import Progress, Verdict
from grader.words import on_one_line, plural

__all__ = ["autograde", "graded_verdicts", "init", "opened_judging", "release", "status", "uncollected"]

_NOT_GRADED = re.compile(r"\] (\S+: not graded: .*)")  # as logged by grader.classroom.preprocessor


def release(course: Path, assignment: str, *, force: bool = False) -> ReleaseResult:
    """Generate the learners' version of an assignment and put it into the exchange.

    A different version in the exchange is replaced only with `force`. The version is generated in a scratch folder
    first, so that a refused release changes neither the gradebook nor `release/`.

    Raises:
        ClassroomError: no such assignment, nbgrader refused it, or a different version is released.
    """
    api = folder.api(course)
    folder.refuse_unknown(api, assignment)
    with folder.rehearsal(api):
        _generate(api, assignment)
        made = folder.path(api, "release", assignment)
        notebooks = tuple(path.name for path in sorted(made.glob("*.ipynb")))
        outcome = _into_exchange(api, assignment, made, force)
    _generate(api, assignment)
    problems = folder.exchange_problems(api) if outcome != "unchanged" else []
    problems += [*_points_changed(api, assignment), *_not_run(api, assignment)]
    return ReleaseResult(assignment, outcome, notebooks, str(folder.outbound(api, assignment)), tuple(problems))


def _points_changed(api: Any, assignment: str) -> list[str]:
    """Messages about the students who were graded with other points than the gradebook has now."""
    from grader.classroom.rescoring import on_an_old_scale

    course = shlex.quote(str(api.coursedir.root))
    return [
        f"the points of {grade_id.removeprefix(folder.CHECK_PREFIX)} changed after {plural(len(students), 'student')} "
        f"({folder.first_names(students)}) were graded: run `grader classroom rescore {course} {assignment}`"
        for grade_id, students in on_an_old_scale(api, assignment).items()
    ]


def _not_run(api: Any, assignment: str) -> list[str]:
    """Messages about the instructor's own test cells, because the judge runs no cell of a submitted notebook."""
    return [
        f"autograde does not run {plural(len(cells), 'test cell')} of your own in {notebook} "
        f"({folder.first_names(cells)}): give these points by hand in Formgrader, or make an exercise of your own with "
        "`grader exercise new`"
        for notebook, cells in folder.cells_without_exercise(api, assignment).items()
    ]


def _generate(api: Any, assignment: str) -> None:
    folder.must(api.generate_assignment(assignment, force=True), f"{assignment} cannot be generated")
    folder.bring_exercises(api, assignment)


def _into_exchange(api: Any, assignment: str, made: Path, force: bool) -> Literal["released", "replaced", "unchanged"]:
    """Put the version at `made` into the exchange, unless it has the same one, or a different one without `force`."""
    outbound = folder.outbound(api, assignment)
    replaces = outbound.is_dir()
    if replaces:
        differing = folder.differences(made, outbound)
        if not differing:
            return "unchanged"
        if not force:
            raise ClassroomError(
                f"A different version of {assignment} is already released; it differs in {', '.join(differing)}. "
                "Replace it with --force; learners who have fetched it keep the old version."
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
    practice_clock: bool = False,
    accept: Collection[str] = (),
    jobs: int = 1,
    gpus: Sequence[int] = (),
    cluster: str = "",
    progress: Progress | None = None,
) -> AutogradeResult:
    """Collect submissions, grade them and write feedback.

    New submissions are graded, and those that could not be judged before; with `force`, all are judged again. A forced
    grading that was interrupted goes on. If one submission cannot be graded, the others still are. Equal texts are
    judged once. Without `sandbox` submissions can do on this machine whatever its user can. With
    `practice_clock` its times count, which a submission can falsify. For the students in `accept`, the owners and times
    of their entries in the exchange are not checked. `jobs` judges work side by side
    without a GPU, or one on each of the `gpus`, or those of the Dask cluster whose scheduler has the address `cluster`.

    Raises:
        ClassroomError: no such assignment or student, the assignment was never released, or these judges would disturb
            each other.
        MachineLacks: this machine has no sandbox, but `sandbox` is true.
    """
    from grader.judge.sandbox import must_be_caged

    api = folder.released(course, assignment)
    if sandbox:
        must_be_caged()
    else:
        api.config.JudgeCells.sandbox = False
    if practice_clock:
        api.config.JudgeCells.practice_clock = True
    with run_log(Path(api.coursedir.root), f"autograde-{assignment}", progress) as tell, folder.one_engine():
        tell("collecting", 0, 1)
        collected, warnings = inbox.collect(api, assignment, accept)
        students = sorted(api.get_submitted_students(assignment))
        if student is not None and student not in students:
            raise ClassroomError(f"{student} has not submitted {assignment}; {plural(len(students), 'student')} did.")
        students = [student] if student is not None else students
        forced = judging.begin_regrade(api.coursedir.root, assignment, students, force=force, alone=student is not None)
        if forced.goes_on:
            warnings.append(f"went on with an interrupted --force, {plural(len(forced.students), 'student')}")
        done = folder.graded(api, assignment) - forced.students
        again = [n for n in students if n not in done or folder.waits_for_judge(api, assignment, n)]
        reasons = _grade_all(
            api, assignment, again, forced, opened_judging(api, forced.since, jobs, gpus, cluster), tell
        )
        results = [_student_result(api, assignment, name, name in again, reasons.get(name, "")) for name in students]
        wrote: Literal["none", "written", "released"] = "none"
        if feedback and results:
            problems = write_all(api, assignment, students, release=release_feedback, progress=tell)
            results = [replace(r, reason="; ".join(filter(None, [r.reason, problems[r.student]]))) for r in results]
            if any(problem is not None for problem in problems.values()):
                wrote = "released" if release_feedback and "" in problems.values() else "written"
        if not sandbox:
            warnings.append("submissions ran without a sandbox, because of --no-sandbox")
        warnings += folder.exchange_problems(api)
        result = AutogradeResult(assignment, collected, tuple(results), wrote, tuple(warnings))
        for line in result.to_text().splitlines():
            tell.write(line)
        return result


def status(course: Path) -> StatusResult:
    """The state of each assignment of a course, and problems with the course.

    Raises:
        ClassroomError: `course` is not a course folder.
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
    """The number of students with newer submissions in the exchange; 0 if that is unknown."""
    if not (course / CONFIG_FILE).is_file():
        return 0
    try:
        return inbox.waiting(folder.api(course), assignment)
    except Exception:  # this is only a hint, for example without nbgrader or with a locked gradebook
        return 0


def _grade(api: Any, assignment: str, student: str) -> str:
    """Autograde one student's work; return why it could not be graded completely, or an empty string."""
    from nbgrader.utils import capture_log, temp_attrs

    from grader.classroom.nbgrader_apps import GradeReadable

    begun = folder.begun(api, assignment, student)
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.touch()
    submitted = folder.path(api, "submitted", assignment, student)
    with temp_attrs(api.coursedir, assignment_id=assignment, student_id=student), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nbformat on the learner's file, SQLAlchemy 2.1 on nbgrader 0.9.6
        app = GradeReadable(coursedir=api.coursedir, parent=api)
        app.force, app.create_student = True, True
        result = capture_log(app)
    failure = folder.why(result)
    begun.unlink(missing_ok=True)
    if not failure:
        not_graded = map(on_one_line, _NOT_GRADED.findall(result.get("log") or ""))
        return "; ".join(filter(None, [folder.not_read(api, assignment, student), *not_graded]))
    shutil.rmtree(folder.path(api, "autograded", assignment, student), ignore_errors=True)  # of an earlier submission
    if not any(submitted.glob("*.ipynb")):
        return on_one_line(f"There is no notebook in {submitted}.")
    return next(iter(folder.unreadable(submitted).values()), failure)


def _grade_all(
    api: Any,
    assignment: str,
    again: list[str],
    forced: Regrade,
    opened: contextlib.AbstractContextManager[Judging],
    tell: Progress,
) -> dict[str, str]:
    """Autograde these students' work; return why it could not be graded completely, by student.

    Students whose texts all have a verdict go first. If there is none, the run waits for the first student's.
    """
    own = folder.notebooks(api.coursedir, assignment)
    handed_in = {name: _handed_in(api, folder.path(api, "submitted", assignment, name), own) for name in again}
    reasons: dict[str, str] = {}
    with opened as judges:
        forced.start()
        while handed_in:
            judges.expect([task for tasks in handed_in.values() for task in tasks])
            name = next((each for each, tasks in handed_in.items() if judges.has(tasks)), next(iter(handed_in)))
            tell(f"grading {name}", len(reasons), len(again))
            reasons[name] = _grade(api, assignment, name)
            forced.done(name)
            del handed_in[name]
    return reasons


@contextlib.contextmanager
def opened_judging(
    api: Any, since: str = "", jobs: int = 1, gpus: Sequence[int] = (), cluster: str = ""
) -> Iterator[Judging]:
    """The judging that nbgrader uses meanwhile: this process's judge, or several side by side."""
    from grader.classroom.grading.dask_cluster import DaskCluster
    from grader.classroom.preprocessor import JudgeCells

    cells: Any = JudgeCells(config=api.config)
    course = Path(api.coursedir.root)
    kind = verdict_store.device_class("cuda" if gpus else cells.device, *gpus[:1])
    workers: Workers = ThisProcess(cells.device, cells.sandbox)
    if cluster:
        workers = dask = DaskCluster(cluster, course, cells.device, cells.sandbox)
        kind = dask.device_class
    elif gpus or jobs > 1:
        workers = side_by_side(jobs, gpus, cells.device, cells.sandbox)
    judges = Judging(
        verdict_store.VerdictStore(course, cells.sandbox), workers, kind, since, practice_clock=cells.practice_clock
    )
    try:
        with judging.using(judges):
            yield judges
    finally:
        workers.close()


def _handed_in(api: Any, submitted: Path, own: set[str]) -> list[Task]:
    """A student's solutions, in nbgrader's order."""
    from grader.classroom.preprocessor import JudgeCells

    cells, found = JudgeCells(config=api.config), []
    for notebook in (submitted / f"{name}.ipynb" for name in sorted(own)):
        with contextlib.suppress(Exception):  # grading it reports the error
            found += [cells.task(each.source, each.exercise_id) for each in submissions_in(notebook)]
    return found


def graded_verdicts(autograded: Path) -> tuple[list[Verdict], list[str]]:
    """The verdicts in a student's graded notebooks, except another grader version's, and problems with the notebooks.

    There is no size limit, because a large submission must not hide the judge's findings.
    """
    found: list[Verdict] = []
    problems = []
    for notebook in sorted(autograded.glob("*.ipynb")):
        try:
            cells = list(json.loads(notebook.read_bytes())["cells"])
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            problems.append(
                f"the judge's findings in {notebook} cannot be read ({type(error).__name__}): grade again with --force"
            )
            continue
        found += filter(None, map(folder.verdict_in, cells))
    return found, problems


def _student_result(api: Any, assignment: str, student: str, again: bool, reason: str) -> StudentResult:
    from nbgrader.api import MissingEntry

    when = inbox.submitted_at(api, assignment, student)
    autograded = folder.path(api, "autograded", assignment, student)
    missing = folder.missing(api, assignment, student, inbox.other_notebooks(api, assignment, student))
    if reason and not autograded.is_dir():
        found = (on_one_line(missing),) if missing else ()
        return StudentResult(student, "failed", 0.0, 0.0, submitted_at=when, reason=reason, to_look_at=found)
    with api.gradebook as gradebook:
        try:
            entry = gradebook.find_submission(assignment, student)
        except MissingEntry:
            return StudentResult(student, "failed", 0.0, 0.0, submitted_at=when, reason=reason or "not graded")
        verdicts, unread = graded_verdicts(autograded)
        findings = [f"{verdict.title}: {sentence}" for verdict in verdicts for sentence in to_look_at(verdict)]
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
            to_look_at=tuple(map(on_one_line, filter(None, [missing, *unread, *findings]))),
            unmeasured=sum(verdict.max_points - verdict.reachable_points for verdict in verdicts),
        )
