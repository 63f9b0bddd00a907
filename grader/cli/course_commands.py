"""`grader lab`, `doctor`, `build`, `pages` and `exercise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.output import AsJson, Device, OnDevice, Progress, answer, print_json
from grader.words import harmless

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Add exercises of your own to a course folder.")
OwnCourse = Annotated[
    Path | None, typer.Option("--course", metavar="DIR", help="The course folder; by default the current one.")
]


@app.command("new")
def new(
    exercise: Annotated[str, typer.Argument(metavar="ID", help="Its id, and the name of its function.")],
    like: Annotated[str, typer.Option("--like", metavar="ID", help="The exercise to copy.")],
    title: Annotated[str, typer.Option(help="Its title; by default derived from the id.")] = "",
    chapter: Annotated[str, typer.Option(help="Its assignment; by default that of --like.")] = "",
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
    exercise: Annotated[str, typer.Argument(metavar="ID", help="The id of the exercise.")],
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


def lab(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="By default 8888 or the next free one.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Your folder; by default work/, or in a class the course's id.")
    ] = None,
    course: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The notebooks to copy; by default course/.")
    ] = None,
    classroom: Annotated[Path | None, typer.Option(metavar="DIR", help="The exchange of your class.")] = None,
    course_id: Annotated[str | None, typer.Option(metavar="ID", help="The course in that exchange.")] = None,
    instructor: Annotated[Path | None, typer.Option(metavar="DIR", help="Your course folder, with Formgrader.")] = None,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="Make the folder only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create your folder and open JupyterLab on the syllabus. Your changes are never overwritten.

    \b
    Example: grader lab --no-browser --port 9000
    Arguments after -- go to JupyterLab: grader lab -- --ip=0.0.0.0
    """
    from grader.lab import prepare, start

    if context.args and not context.args[0].startswith("-"):
        raise typer.BadParameter(f"{context.args[0]!r} is an unexpected argument: name your folder with --folder.")
    made = prepare(
        port=port, browser=browser, folder=folder, course=course, classroom=classroom, course_id=course_id,
        instructor=instructor, arguments=context.args,
    )  # fmt: skip
    if as_json:
        print_json(made.to_dict())
    elif made.folder is not None:
        typer.echo(harmless(made.folder.to_text()))
    if not prepare_only:
        start(made)


def doctor(as_json: AsJson = False) -> None:
    """Report what this machine can do, what is simulated, and how to fix what is missing.

    \b
    Example: grader doctor
    """
    from grader.doctor import as_text, examine, healthy, to_dicts

    findings = examine()
    answer(as_json, {"ok": healthy(findings), "findings": to_dicts(findings)}, as_text(findings))
    raise typer.Exit(0 if healthy(findings) else 1)


def build(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if course/ is out of date or has solutions in it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build the course's notebooks, course/, from source/.

    \b
    Example: grader build --check
    """
    from grader.authoring.build import build, report_text

    made = build(check=check)
    answer(as_json, made.to_dict(), report_text(made))
    raise typer.Exit(0 if made.ok else 1)


def pages(
    site: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the pages; it is emptied first.")],
    run: Annotated[bool, typer.Option(help="Run the notebooks that have changed since they last ran.")] = True,
) -> None:
    """Render the notebooks, with outputs and without solutions, as a site that can be read before installing.

    \b
    Example: grader pages build/site
    """
    from grader.authoring.pages import write
    from grader.installation import COURSE

    for page in write(COURSE, site, site.with_name("ran-notebooks"), run):
        typer.echo(str(site / page))
