"""`grader classroom` and `grader leaderboard`."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from grader.cli.output import (
    AsJson,
    CourseFolder,
    Device,
    NoSandbox,
    OfCourse,
    OnDevice,
    PracticeClock,
    Progress,
    StoreFile,
    answer,
    complain,
    report,
)
from grader.words import plural

Assignment = Annotated[str, typer.Argument(help="A chapter, such as 03_triton.")]
ExerciseId = Annotated[str, typer.Argument(metavar="EXERCISE", help="The exercise; `grader exercises` lists them.")]


class Style(StrEnum):
    csv = "csv"
    canvas = "canvas"
    moodle = "moodle"
    gradescope = "gradescope"


class_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run a class with nbgrader.")
board_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure a course again and rank it.")


@class_app.command("init")
def init(
    course: CourseFolder,
    course_id: Annotated[str, typer.Option(metavar="ID", help="Its name in the exchange.")] = "gpu-course",
    exchange: Annotated[Path | None, typer.Option(metavar="DIR", help="By default next to the course folder.")] = None,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Also replace older files that nobody edited.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a course folder for nbgrader, and its exchange; or bring the notebooks up to this version.

    \b
    Example: grader classroom init ~/gpu-course
    """
    from grader.classroom import class_actions

    report(class_actions.init(course, course_id=course_id, exchange=exchange, upgrade=upgrade), as_json)


@class_app.command("release")
def release(
    course: CourseFolder,
    assignment: Assignment,
    force: Annotated[bool, typer.Option("--force", help="Replace a different released version.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put an assignment into the exchange.

    \b
    Example: grader classroom release ~/gpu-course 03_triton
    """
    from grader.classroom import class_actions

    report(class_actions.release(course, assignment, force=force), as_json)


@class_app.command("autograde")
def autograde(
    course: CourseFolder,
    assignment: Assignment,
    student: Annotated[str | None, typer.Option(metavar="ID", help="Grade this student only.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Grade again what is already graded.")] = False,
    feedback: Annotated[bool, typer.Option("--feedback/--no-feedback", help="Whether to write feedback.")] = True,
    release_feedback: Annotated[bool, typer.Option("--release-feedback", help="Put it into the exchange.")] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Collect this student's work without checking its owner and time. May be repeated."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, max=256, help="Judge N submissions side by side, without a GPU.")
    ] = 1,
    gpus: Annotated[
        str, typer.Option(metavar="0,1", help="Judge on each of these GPUs, side by side. They count from 0.")
    ] = "",
    cluster: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Judge on the Dask cluster with this scheduler.")
    ] = "",
    no_sandbox: NoSandbox = False,
    practice_clock: PracticeClock = False,
    as_json: AsJson = False,
) -> None:
    """Collect submissions, grade them and write feedback. An interrupted run continues where it stopped.

    \b
    Example: grader classroom autograde ~/gpu-course 03_triton --release-feedback
    """
    from grader.classroom import class_actions

    if sum((jobs > 1, bool(gpus), bool(cluster))) > 1:
        raise typer.BadParameter("Use only one of --jobs, --gpus and --cluster.")
    with Progress(lines=True) as progress:
        result = class_actions.autograde(
            course, assignment, student=student, force=force, feedback=feedback,
            release_feedback=release_feedback, sandbox=not no_sandbox, accept=accept or (),
            practice_clock=practice_clock,
            jobs=jobs, gpus=_numbers(gpus), cluster=cluster, progress=progress,
        )  # fmt: skip
    report(result, as_json)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of numbers, such as 0,1.", param_hint="--gpus") from None


@class_app.command("gates")
def gates(
    exercises: Annotated[
        list[str], typer.Argument(metavar="EXERCISE...", help="The exercises; `grader exercises` lists them.")
    ],
    course: OfCourse = Path(),
) -> None:
    """Print the points, gates and limits of exercises, as they stand in a course's gates.toml or in the package.

    \b
    Example: grader classroom gates softmax matmul >> ~/gpu-course/gates.toml
    """
    from grader.exercises import class_gates, find, found

    found.use(course)
    answer(False, None, "\n\n".join(class_gates.as_toml(find(name)) for name in exercises))


@class_app.command("rescore")
def rescore(
    course: CourseFolder,
    assignment: Assignment,
    feedback: Annotated[bool, typer.Option("--feedback/--no-feedback", help="Whether to write feedback.")] = True,
    release_feedback: Annotated[bool, typer.Option("--release-feedback", help="Put it into the exchange.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute points, late penalties and feedback again from stored verdicts, after a change of points or dates.

    \b
    Example: grader classroom rescore ~/gpu-course 03_triton --release-feedback
    """
    from grader.classroom import rescoring

    with Progress(lines=True) as progress:
        result = rescoring.rescore(
            course, assignment, feedback=feedback, release_feedback=release_feedback, progress=progress
        )
    report(result, as_json)


@class_app.command("status")
def status(course: CourseFolder, as_json: AsJson = False) -> None:
    """Report what is released, submitted and graded.

    \b
    Example: grader classroom status ~/gpu-course
    """
    from grader.classroom import class_actions

    report(class_actions.status(course), as_json)


@class_app.command("roster")
def roster(
    course: CourseFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file with a header and a column `id`.")],
    as_json: AsJson = False,
) -> None:
    """Import the class list. Other columns: first_name, last_name, email, lms_user_id.

    \b
    Example: grader classroom roster ~/gpu-course students.csv
    """
    from grader.classroom.term.roster import import_roster

    report(import_roster(course, file), as_json)


@class_app.command("due")
def due(
    course: CourseFolder,
    assignment: Assignment,
    when: Annotated[str, typer.Argument(metavar="TIME", help='Such as "2026-12-01 18:00", or none.')],
    as_json: AsJson = False,
) -> None:
    """Set an assignment's due date, in this machine's time zone.

    \b
    Example: grader classroom due ~/gpu-course 03_triton "2026-12-01 18:00"
    """
    from grader.classroom.term.due_dates import set_due_date

    report(set_due_date(course, assignment, when), as_json)


@class_app.command("extend")
def extend(
    course: CourseFolder,
    assignment: Assignment,
    student: Annotated[str, typer.Argument(metavar="STUDENT", help="The student's id.")],
    hours: Annotated[float, typer.Option(metavar="H", help="From the due date on. 0 takes the extension back.")],
    as_json: AsJson = False,
) -> None:
    """Give one student more time, instead of any earlier extension.

    \b
    Example: grader classroom extend ~/gpu-course 03_triton bob --hours 48
    """
    from grader.classroom.term.due_dates import extend as give

    report(give(course, assignment, student, hours), as_json)


@class_app.command("solutions")
def solutions(
    course: CourseFolder,
    assignment: Assignment,
    early: Annotated[bool, typer.Option("--early", help="Do not wait for the due date and the extensions.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let learners fetch the solved notebooks, once nobody may hand in any more.

    \b
    Example: grader classroom solutions ~/gpu-course 03_triton
    """
    from grader.classroom.term.solutions import release_solutions

    report(release_solutions(course, assignment, early=early), as_json)


@class_app.command("stats")
def stats(
    course: CourseFolder,
    assignments: Annotated[list[str] | None, typer.Argument(metavar="ASSIGNMENT", help="By default all.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a table.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page with charts.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show pass rates, points and the most frequent bugs, and who is missing.

    \b
    Example: grader classroom stats ~/gpu-course 03_triton --html stats.html
    """
    from grader.classroom.term.class_statistics import class_statistics
    from grader.classroom.term.grade_export import write_private

    found = class_statistics(course, tuple(assignments or ()))
    if csv is not None:
        write_private(csv, found.to_csv())
    if html is not None:
        write_private(html, found.to_html())
    report(found, as_json)


@class_app.command("copies")
def copies(course: CourseFolder, assignment: Assignment, as_json: AsJson = False) -> None:
    """List submissions with the same text, or with the same program but for names, comments and order.

    \b
    Example: grader classroom copies ~/gpu-course 03_triton
    """
    from grader.classroom.term.copies import find_copies

    report(find_copies(course, assignment), as_json)


@class_app.command("export")
def export(
    course: CourseFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSV file to write.")],
    style: Annotated[Style, typer.Option("--format", help="What imports it.")] = Style.csv,
    as_json: AsJson = False,
) -> None:
    """Write the grades, with a column per exercise, or as Canvas, Moodle or Gradescope imports them.

    \b
    Example: grader classroom export ~/gpu-course canvas.csv --format canvas
    """
    from grader.classroom.term.class_grades import class_grades
    from grader.classroom.term.grade_export import as_csv, write_private

    grades = class_grades(course)
    write_private(file, as_csv(grades, style.value))
    students = len(grades.students)
    answer(as_json, {"file": str(file), "students": students}, f"{plural(students, 'student')} written to {file}.")


@class_app.command("token")
def token(
    course: CourseFolder,
    students: Annotated[list[str] | None, typer.Argument(metavar="STUDENT...", help="Their ids.")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Everybody in the gradebook.")] = False,
    days: Annotated[float, typer.Option(min=0, help="How long the tokens are valid.")] = 180.0,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke the tokens made so far, and make none.")] = False,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a table instead of printing.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the tokens with which students send work to `grader classroom serve`.

    \b
    Example: grader classroom token ~/gpu-course bob
    """
    from grader.classroom.term.grade_export import write_private
    from grader.server.serving import tokens

    made = tokens(course, students or (), everybody=everybody, days=days, revoke=revoke)
    if csv is not None:
        write_private(csv, made.to_csv())
        made = replace(made, tokens={}, file=str(csv), written=len(made.tokens))
    report(made, as_json)


@class_app.command("serve")
def serve(
    course: CourseFolder,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for a free one.")] = 8443,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="For HTTPS: in PEM format.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate's private key.")] = None,
    per_hour: Annotated[int, typer.Option(min=1, help="How many submissions a student may send per hour.")] = 20,
    waiting: Annotated[int, typer.Option(min=1, help="How many of a student's submissions may wait.")] = 10,
    watch: Annotated[float, typer.Option(min=0, help="Seconds between looks into the exchange; 0: never.")] = 10.0,
    no_sandbox: NoSandbox = False,
    practice_clock: PracticeClock = False,
) -> None:
    """Judge submissions as they arrive, from the exchange and from `grader submit`, until you press Ctrl-C.

    \b
    Example: grader classroom serve ~/gpu-course --host 0.0.0.0 --certificate cert.pem --key key.pem
    """
    from grader.server import serving
    from grader.server.job_queue import Limits
    from grader.server.judge_loop import Settings

    settings = Settings(course.expanduser().absolute(), not no_sandbox, practice_clock, watch)
    address = serving.Address(host, port, certificate, key)
    serving.serve(settings, address, Limits(per_hour, waiting), complain)


@class_app.command("gradescope")
def gradescope(
    course: CourseFolder,
    assignment: Assignment,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The zip file to write.")],
    wheel: Annotated[Path, typer.Option(metavar="FILE", help="This package's wheel, from `make wheel`.")],
    as_json: AsJson = False,
) -> None:
    """Write an autograder for Gradescope, which grades a chapter's notebooks without a GPU.

    \b
    Example: grader classroom gradescope ~/gpu-course 03_triton autograder.zip --wheel dist/gpu_course.whl
    """
    from grader.classroom.term.gradescope import write_autograder

    report(write_autograder(course, assignment, wheel, file), as_json)


@board_app.command("run")
def run(
    exercises: Annotated[
        list[str] | None, typer.Argument(metavar="EXERCISE...", help="The exercises; `grader exercises` lists them.")
    ] = None,
    all_timed: Annotated[bool, typer.Option("--all", help="All timed exercises with submissions.")] = False,
    course: OfCourse = Path(),
    store: StoreFile = None,
    device: OnDevice = Device.auto,
    no_sandbox: NoSandbox = False,
    practice_clock: PracticeClock = False,
    as_json: AsJson = False,
) -> None:
    """Measure a course's submissions again, each exercise in one session. An interrupted run continues.

    \b
    Example: grader leaderboard run softmax matmul --course ~/gpu-course
    """
    from grader.classroom.class_actions import uncollected
    from grader.classroom.term.due_dates import counted
    from grader.exercises import find, found
    from grader.leaderboard import board_actions

    if bool(exercises) == all_timed:
        raise typer.BadParameter("Name one exercise or more, or use --all.")
    names, outcomes = exercises or board_actions.with_submissions(course), []
    found.use(course)
    chapters = dict.fromkeys(find(exercise).chapter for exercise in names)  # a wrong name ends it before any is run
    for exercise in names:
        deadline = counted(course, find(exercise).chapter)
        with Progress(lines=True) as progress:
            outcome = board_actions.run(
                exercise,
                course=course,
                store=store,
                device=device.value,
                sandbox=not no_sandbox,
                practice_clock=practice_clock,
                progress=progress,
                deadline=deadline,
            )
        outcomes.append(outcome)
        if not as_json:
            answer(False, None, outcome.as_text())
        if unseen := [student for student, folder in deadline.late.items() if folder is None]:
            complain(f"Left out, because all their work is late: {', '.join(unseen)}.")
    if as_json:
        answers = [outcome.to_dict() for outcome in outcomes]
        answer(True, answers if all_timed or len(names) > 1 else answers[0], "")
    quoted = shlex.quote(str(course))
    for chapter in chapters:
        if waiting := uncollected(course, chapter):
            complain(f"{waiting} newer in the exchange; collect with `grader classroom autograde {quoted} {chapter}`.")


@board_app.command("publish")
def publish(
    dest: Annotated[Path, typer.Argument(metavar="DIR", help="The site's folder.")],
    course: OfCourse = Path(),
    store: StoreFile = None,
    notes: Annotated[bool, typer.Option("--notes", help="Also show the notes about rules and clocks.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the leaderboard as a static site, without the students' own names.

    \b
    Example: grader leaderboard publish site/ --course ~/gpu-course
    """
    from grader.leaderboard import board_actions

    site = board_actions.publish(dest, store=store or course / board_actions.STORE_NAME, notes=notes)
    answer(as_json, site.to_dict(), site.as_text())
    raise typer.Exit(0 if site.ok else 1)


@board_app.command("names")
def names(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file with the columns `id` and `name`.")],
    course: OfCourse = Path(),
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Set the names that students chose for the boards. No name: the pseudonym. `-`: the student is not shown.

    \b
    Example: grader leaderboard names names.csv --course ~/gpu-course
    """
    from grader.classroom.term.board_names import import_names
    from grader.leaderboard.board_actions import STORE_NAME

    report(import_names(course, file, store or course / STORE_NAME), as_json)


@board_app.command("show")
def show(
    exercise: ExerciseId,
    course: OfCourse = Path(),
    store: StoreFile = None,
    names: Annotated[bool, typer.Option("--names", help="Also show the students' names, for you only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the standings of an exercise.

    \b
    Example: grader leaderboard show softmax --course ~/gpu-course
    """
    from grader.leaderboard import board_actions

    view = board_actions.show(exercise, store=store or course / board_actions.STORE_NAME, names=names)
    answer(as_json, view.to_dict(), str(view))
