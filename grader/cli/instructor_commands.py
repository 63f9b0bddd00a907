"""`grader classroom` and `grader leaderboard`."""

from __future__ import annotations

import shlex
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
    Progress,
    StoreFile,
    answer,
    complain,
    report,
)

Assignment = Annotated[str, typer.Argument(help="A chapter, such as 03_triton.")]
ExerciseId = Annotated[str, typer.Argument(metavar="EXERCISE", help="The exercise; `grader exercises` lists them.")]

class_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run a class with nbgrader.")
board_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure a course again and rank it.")


@class_app.command("init")
def init(
    course: CourseFolder,
    course_id: Annotated[str, typer.Option(metavar="ID", help="Its name in the exchange.")] = "gpu-course",
    exchange: Annotated[Path | None, typer.Option(metavar="DIR", help="By default next to the course folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a course folder for nbgrader, and its exchange.

    \b
    Example: grader classroom init ~/gpu-course
    """
    from grader.classroom import class_actions

    report(class_actions.init(course, course_id=course_id, exchange=exchange), as_json)


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
    as_json: AsJson = False,
) -> None:
    """Collect submissions, grade them and write feedback. An interrupted run continues where it stopped.

    \b
    Examples: grader classroom autograde ~/gpu-course 03_triton --release-feedback
              grader classroom autograde ~/gpu-course 03_triton --jobs 4
    """
    from grader.classroom import class_actions

    if sum((jobs > 1, bool(gpus), bool(cluster))) > 1:
        raise typer.BadParameter("Use only one of --jobs, --gpus and --cluster.")
    with Progress(lines=True) as progress:
        result = class_actions.autograde(
            course, assignment, student=student, force=force, feedback=feedback,
            release_feedback=release_feedback, sandbox=not no_sandbox, accept=accept or (),
            jobs=jobs, gpus=_numbers(gpus), cluster=cluster, progress=progress,
        )  # fmt: skip
    report(result, as_json)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of numbers, such as 0,1.", param_hint="--gpus") from None


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


@board_app.command("run")
def run(
    exercise: ExerciseId,
    course: OfCourse = Path(),
    store: StoreFile = None,
    device: OnDevice = Device.auto,
    no_sandbox: NoSandbox = False,
    as_json: AsJson = False,
) -> None:
    """Measure a course's submissions again, in one session. An interrupted run continues where it stopped.

    \b
    Example: grader leaderboard run softmax --course ~/gpu-course
    """
    from grader.classroom.class_actions import uncollected
    from grader.exercises import find
    from grader.leaderboard import board_actions

    with Progress(lines=True) as progress:
        outcome = board_actions.run(
            exercise, course=course, store=store, device=device.value, sandbox=not no_sandbox, progress=progress
        )
    answer(as_json, outcome.to_dict(), outcome.as_text())
    chapter, quoted = find(exercise).chapter, shlex.quote(str(course))
    if waiting := uncollected(course, chapter):
        complain(f"{waiting} newer in the exchange; collect with `grader classroom autograde {quoted} {chapter}`.")


@board_app.command("publish")
def publish(
    dest: Annotated[Path, typer.Argument(metavar="DIR", help="The site's folder.")],
    course: OfCourse = Path(),
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the leaderboard as a static site, with pseudonyms only.

    \b
    Example: grader leaderboard publish site/ --course ~/gpu-course
    """
    from grader.leaderboard import board_actions

    site = board_actions.publish(dest, store=store or course / board_actions.STORE_NAME)
    answer(as_json, site.to_dict(), site.as_text())
    raise typer.Exit(0 if site.ok else 1)


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
