"""`grader classroom`: a class with nbgrader."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.answers import Progress, report
from grader.cli.options import AsJson, CourseFolder, NoSandbox

__all__ = ["app"]

Assignment = Annotated[str, typer.Argument(help="A chapter, as 03_triton.")]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="A class with nbgrader: hand out and grade.")


@app.command("init")
def init(
    course: CourseFolder,
    course_id: Annotated[str, typer.Option(metavar="ID", help="Its name in the exchange.")] = "gpu-course",
    exchange: Annotated[Path | None, typer.Option(metavar="DIR", help="By default beside the course folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a course folder that nbgrader works in, and its exchange.

    \b
    Example: grader classroom init ~/gpu-course
    """
    from grader.classroom import commands

    report(commands.init(course, course_id=course_id, exchange=exchange), as_json)


@app.command("release")
def release(
    course: CourseFolder,
    assignment: Assignment,
    force: Annotated[bool, typer.Option("--force", help="Replace another version that is released.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put an assignment into the exchange.

    \b
    Example: grader classroom release ~/gpu-course 03_triton
    """
    from grader.classroom import commands

    report(commands.release(course, assignment, force=force), as_json)


@app.command("autograde")
def autograde(
    course: CourseFolder,
    assignment: Assignment,
    student: Annotated[str | None, typer.Option(metavar="ID", help="Only this student's.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Also what is graded already.")] = False,
    feedback: Annotated[bool, typer.Option("--feedback/--no-feedback", help="Whether to write feedback.")] = True,
    release_feedback: Annotated[bool, typer.Option("--release-feedback", help="Put it into the exchange.")] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Collect in this student's name what another user put there, and believe its time. May be repeated.",
        ),
    ] = None,
    no_sandbox: NoSandbox = False,
    as_json: AsJson = False,
) -> None:
    """Collect what was submitted, have it judged, write feedback.

    \b
    Example: grader classroom autograde ~/gpu-course 03_triton --release-feedback
    """
    from grader.classroom import commands

    with Progress() as progress:
        result = commands.autograde(
            course, assignment, student=student, force=force, feedback=feedback,
            release_feedback=release_feedback, sandbox=not no_sandbox, accept=accept or (),
            progress=progress,
        )  # fmt: skip
    report(result, as_json)


@app.command("status")
def status(course: CourseFolder, as_json: AsJson = False) -> None:
    """Say what is released, submitted and graded.

    \b
    Example: grader classroom status ~/gpu-course
    """
    from grader.classroom import commands

    report(commands.status(course), as_json)
