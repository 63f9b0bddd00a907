"""`grader leaderboard`: measure a course anew and rank it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from grader.cli.answers import Progress, answer, complain
from grader.cli.options import AsJson, Device, NoSandbox, OfCourse, OnDevice, StoreFile

__all__ = ["app"]

ExerciseId = Annotated[str, typer.Argument(metavar="EXERCISE", help="Which exercise; `grader exercises` lists them.")]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure a course anew and rank it.")


@app.command("run")
def run(
    exercise: ExerciseId,
    course: OfCourse = Path(),
    store: StoreFile = None,
    device: OnDevice = Device.auto,
    no_sandbox: NoSandbox = False,
    as_json: AsJson = False,
) -> None:
    """Measure a course's submissions anew, in turn, in one session. A run that was stopped goes on where it was.

    \b
    Example: grader leaderboard run softmax --course ~/gpu-course
    """
    from grader.classroom.commands import uncollected
    from grader.exercises import find
    from grader.leaderboard import commands

    with Progress() as progress:
        outcome = commands.run(
            exercise, course=course, store=store, device=device.value, sandbox=not no_sandbox, progress=progress
        )
    answer(as_json, outcome.to_dict(), outcome.as_text())
    chapter, quoted = find(exercise).chapter, shlex.quote(str(course))
    if waiting := uncollected(course, chapter):
        complain(f"{waiting} newer in the exchange: `grader classroom autograde {quoted} {chapter}` collects them.")


@app.command("publish")
def publish(
    dest: Annotated[Path, typer.Argument(metavar="DIR", help="Where the site is written to.")],
    course: OfCourse = Path(),
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the leaderboard as a static site: pseudonyms only, nothing fetched from elsewhere.

    \b
    Example: grader leaderboard publish site/ --course ~/gpu-course
    """
    from grader.leaderboard import commands

    site = commands.publish(dest, store=store or course / commands.STORE_NAME)
    answer(as_json, site.to_dict(), site.as_text())
    raise typer.Exit(0 if site.ok else 1)


@app.command("show")
def show(
    exercise: ExerciseId,
    course: OfCourse = Path(),
    store: StoreFile = None,
    names: Annotated[bool, typer.Option("--names", help="Also the students' own names, for your eyes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the standings of an exercise.

    \b
    Example: grader leaderboard show softmax --course ~/gpu-course
    """
    from grader.leaderboard import commands

    view = commands.show(exercise, store=store or course / commands.STORE_NAME, names=names)
    answer(as_json, view.to_dict(), str(view))
