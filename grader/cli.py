"""The command `grader`: every sub-command is a call into the package. Exit status 0 passed, 1 failed, 2 unusable."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from grader.errors import GraderError, MachineLacks
from grader.version import __version__

if TYPE_CHECKING:
    from grader.submission import Submission
    from grader.verdict import Verdict

__all__ = ["app", "main"]

_STATUS = {"passed": 0, "failed": 1, "unusable": 2}


class Device(str, Enum):
    """Where submissions run."""

    auto = "auto"
    cuda = "cuda"
    simulator = "simulator"


class _Group(typer.core.TyperGroup):
    """The one place in which errors become a sentence and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except GraderError as error:
            _complain(str(error))
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            _complain("Stopped.")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # `grader exercises | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (typer.Exit, typer.Abort, SystemExit):
            raise
        except Exception as error:
            if type(error).__module__.startswith(("typer", "click")):  # wrong arguments: it has its own words
                raise
            _complain(_bug(error))
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn to program a GPU, and be graded by a judge that can be trusted.",
)
classroom = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="A class with nbgrader: hand out and grade.")
leaderboard = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Measure a course anew and rank it.")
app.add_typer(classroom, name="classroom")
app.add_typer(leaderboard, name="leaderboard")

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
OnDevice = Annotated[Device, typer.Option("--device", help="Where it runs; auto is the GPU where there is one.")]
OfExercise = Annotated[str | None, typer.Option("--exercise", "-e", metavar="ID", help="Which exercise; see `exercises`.")]
Course = Annotated[Path, typer.Argument(metavar="DIR", help="The course folder.")]
Assignment = Annotated[str, typer.Argument(help="A chapter, as 03_triton.")]
StoreFile = Annotated[Path | None, typer.Option("--store", metavar="FILE", help="The leaderboard's database.")]


def main() -> None:
    """The entry point of the command."""
    app(prog_name="grader")


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", help="Say the version and end.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": False})
def lab(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="By default 8888, or the next free one.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True,
    folder: Annotated[Path | None, typer.Option(metavar="DIR", help="Your folder; by default work/.")] = None,
    course: Annotated[Path | None, typer.Option(metavar="DIR", help="What it is filled from; by default course/.")] = None,
    classroom: Annotated[Path | None, typer.Option(metavar="DIR", help="The exchange that your instructor named.")] = None,
    course_id: Annotated[str | None, typer.Option(metavar="ID", help="Which course of that exchange.")] = None,
    instructor: Annotated[Path | None, typer.Option(metavar="DIR", help="Your course folder, with Formgrader.")] = None,
    prepare_only: Annotated[bool, typer.Option("--prepare-only", help="Make the folder, start nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make your folder and open JupyterLab on the syllabus. What you have changed is never overwritten.

    Example: grader lab --no-browser --port 9000
    Arguments after -- go to JupyterLab: grader lab -- --ip=0.0.0.0
    """
    from grader.lab import prepare, start

    made = prepare(
        port=port, browser=browser, folder=folder, course=course, classroom=classroom, course_id=course_id,
        instructor=instructor, arguments=context.args,
    )  # fmt: skip
    if as_json:
        _print_json(made.to_dict())
    elif made.folder is not None:
        typer.echo(made.folder.to_text())
    if not prepare_only:
        start(made)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine can do, what will be simulated, and how to mend each lack.

    Example: grader doctor
    """
    from grader.doctor import as_text, examine, healthy, to_dicts

    findings = examine()
    _answer(as_json, {"ok": healthy(findings), "findings": to_dicts(findings)}, as_text(findings))
    raise typer.Exit(0 if healthy(findings) else 1)


@app.command()
def build(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail where course/ is stale or leaks.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build the course's notebooks, course/, from source/.

    Example: grader build --check
    """
    from grader.authoring.build import build, report_text

    report = build(check=check)
    _answer(as_json, report.to_dict(), report_text(report))
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def exercises(as_json: AsJson = False) -> None:
    """List the exercises.

    Example: grader exercises --json
    """
    from grader.exercises import EXERCISES

    rows = [
        {
            "id": each.id, "title": each.title, "notebook": f"{each.chapter}/{each.notebook}", "language": each.backend,
            "points": each.max_points, "correctness_points": each.correctness_points,
            "gates": [
                {"baseline": gate.baseline, "at_least": gate.at_least, "points": gate.points} for gate in each.gates
            ],
        }
        for each in EXERCISES.values()
    ]  # fmt: skip
    lines = []
    for row, each in zip(rows, EXERCISES.values(), strict=True):
        gates = ", ".join(f"{gate.at_least:g}× {each.baseline(gate.baseline).label}" for gate in each.gates)
        lines.append(f"{each.id:<16} {each.max_points:>3g} points  {row['notebook']:<36} {each.title}")
        lines += [f"{'':<16} {'':>10}  at least {gates}"] if gates else []
    _answer(as_json, rows, "\n".join(lines))


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .py file or a notebook.")],
    exercise: OfExercise = None,
    device: OnDevice = Device.auto,
    as_json: AsJson = False,
) -> None:
    """Say whether a solution is right; nothing is timed.

    Example: grader check softmax.py
    """
    _judge(file, exercise, device, as_json, timed=False)


@app.command()
def grade(
    file: Annotated[Path, typer.Argument(metavar="FILE|NOTEBOOK", help="A .py file or a notebook.")],
    exercise: OfExercise = None,
    device: OnDevice = Device.auto,
    as_json: AsJson = False,
) -> None:
    """Grade a solution: right, how fast, how many points. A notebook's exercises are all graded unless one is named.

    Example: grader grade softmax.py --exercise softmax --device auto
    """
    _judge(file, exercise, device, as_json, timed=True)


@classroom.command("init")
def classroom_init(
    course: Course,
    course_id: Annotated[str, typer.Option(metavar="ID", help="Its name in the exchange.")] = "gpu-course",
    exchange: Annotated[Path | None, typer.Option(metavar="DIR", help="By default beside the course folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a course folder that nbgrader works in, and its exchange.

    Example: grader classroom init ~/gpu-course
    """
    from grader.classroom import commands

    _report(commands.init(course, course_id=course_id, exchange=exchange), as_json)


@classroom.command("release")
def classroom_release(
    course: Course,
    assignment: Assignment,
    force: Annotated[bool, typer.Option("--force", help="Replace another version that is released.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put an assignment into the exchange.

    Example: grader classroom release ~/gpu-course 03_triton
    """
    from grader.classroom import commands

    _report(commands.release(course, assignment, force=force), as_json)


@classroom.command("autograde")
def classroom_autograde(
    course: Course,
    assignment: Assignment,
    student: Annotated[str | None, typer.Option(metavar="ID", help="Only this student's.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Also what is graded already.")] = False,
    feedback: Annotated[bool, typer.Option("--feedback/--no-feedback", help="Whether to write feedback.")] = True,
    release_feedback: Annotated[bool, typer.Option("--release-feedback", help="Put it into the exchange.")] = False,
    as_json: AsJson = False,
) -> None:
    """Collect what was submitted, have it judged, write feedback.

    Example: grader classroom autograde ~/gpu-course 03_triton --release-feedback
    """
    from grader.classroom import commands

    with _Progress() as progress:
        result = commands.autograde(
            course, assignment, student=student, force=force, feedback=feedback,
            release_feedback=release_feedback, progress=progress,
        )  # fmt: skip
    _report(result, as_json)


@classroom.command("status")
def classroom_status(course: Course, as_json: AsJson = False) -> None:
    """Say what is released, submitted and graded.

    Example: grader classroom status ~/gpu-course
    """
    from grader.classroom import commands

    _report(commands.status(course), as_json)


@leaderboard.command("run")
def leaderboard_run(
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="Which exercise; see `grader exercises`.")],
    course: Annotated[Path, typer.Option(metavar="DIR", help="A course folder, or a folder of NAME.py files.")] = Path(),
    store: StoreFile = None,
    device: OnDevice = Device.auto,
    as_json: AsJson = False,
) -> None:
    """Measure a course's submissions anew, in turn, in one session. A run that was stopped goes on where it was.

    Example: grader leaderboard run softmax --course ~/gpu-course
    """
    from grader.leaderboard import commands

    with _Progress() as progress:
        outcome = commands.run(exercise, course=course, store=store, device=device.value, progress=progress)
    _answer(as_json, outcome.to_dict(), outcome.as_text())
    raise typer.Exit(0 if outcome.finished else 2)


@leaderboard.command("publish")
def leaderboard_publish(
    dest: Annotated[Path, typer.Argument(metavar="DIR", help="Where the site is written to.")],
    store: StoreFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the leaderboard as a static site: pseudonyms only, nothing fetched from elsewhere.

    Example: grader leaderboard publish site/ --store ~/gpu-course/leaderboard.sqlite
    """
    from grader.leaderboard import commands

    report = commands.publish(dest, store=store)
    _answer(as_json, report.to_dict(), report.as_text())


@leaderboard.command("show")
def leaderboard_show(
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="Which exercise; see `grader exercises`.")],
    store: StoreFile = None,
    names: Annotated[bool, typer.Option("--names", help="Also the students' own names, for your eyes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the standings of an exercise.

    Example: grader leaderboard show softmax --store ~/gpu-course/leaderboard.sqlite
    """
    from grader.leaderboard import commands

    view = commands.show(exercise, store=store, names=names)
    _answer(as_json, view.to_dict(), str(view))


def _judge(file: Path, exercise: str | None, device: Device, as_json: bool, *, timed: bool) -> None:
    """Grades what the file submits, prints it and ends with the worst status."""
    from grader.feedback.report import as_text
    from grader.judge.service import Judge

    several, submissions = _submissions(file, exercise)
    verdicts: list[Verdict] = []
    with Judge(device.value) as judge, _Progress() as progress:
        for each in submissions:
            verdict = judge.grade(each.source, each.exercise_id, timed=timed, progress=progress)
            progress.clear()
            verdicts.append(verdict)
            if not as_json:
                typer.echo(as_text(verdict, each.source))
    if as_json:
        answers = [verdict.to_dict() for verdict in verdicts]
        _print_json(answers if several else answers[0])
    raise typer.Exit(max(_STATUS[verdict.status] for verdict in verdicts))


def _submissions(file: Path, exercise: str | None) -> tuple[bool, list[Submission]]:
    """What is to be graded, and whether the answer is a list: of a notebook without --exercise it always is."""
    from grader.submission import from_file, submissions_in

    if exercise is None and file.suffix.lower() == ".ipynb":
        return True, submissions_in(file)
    return False, [from_file(file, exercise)]


def _report(result: Any, as_json: bool) -> None:
    _answer(as_json, result.to_dict(), result.to_text())
    raise typer.Exit(0 if result.ok else 1)


def _answer(as_json: bool, data: Any, text: str) -> None:
    if as_json:
        _print_json(data)
    else:
        typer.echo(text)


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
