"""`grader exercise`: exercises of a course's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.answers import Progress, answer
from grader.cli.options import AsJson, Device, OnDevice

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Add exercises of your own to a course folder.")
OwnCourse = Annotated[
    Path | None, typer.Option("--course", metavar="DIR", help="The course folder; by default the one you are in.")
]


@app.command("new")
def new(
    exercise: Annotated[str, typer.Argument(metavar="ID", help="Its id, and the name of its function.")],
    like: Annotated[str, typer.Option("--like", metavar="ID", help="The exercise to start from, as a copy.")],
    title: Annotated[str, typer.Option(help="Its title; by default made from the id.")] = "",
    chapter: Annotated[str, typer.Option(help="The assignment it belongs to; by default that of --like.")] = "",
    course: OwnCourse = None,
    as_json: AsJson = False,
) -> None:
    """Write the module, the notebook and the test of a new exercise into a course folder.

    \b
    Example: grader exercise new layer_norm --like softmax
    """
    from grader.authoring.new_exercise import new_exercise

    made = new_exercise(exercise, like, course=course, title=title, chapter=chapter)
    answer(as_json, made.to_dict(), made.to_text())


@app.command("budget")
def budget(
    exercise: Annotated[str, typer.Argument(metavar="ID", help="Which exercise.")],
    device: OnDevice = Device.auto,
    course: OwnCourse = None,
    as_json: AsJson = False,
) -> None:
    """Run the reference solution and print ten times its worst error, as a budget to paste.

    \b
    Example: grader exercise budget layer_norm
    """
    from grader.authoring.budget import measure_budget

    with Progress() as progress:
        found = measure_budget(exercise, device=device.value, course=course, progress=progress)
    answer(as_json, found.to_dict(), found.to_text())
