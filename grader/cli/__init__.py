"""The command `grader`. Its exit status is 0 for passed, 1 for failed and 2 for an error."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
import typer.core

from grader.cli import course_commands, grading_commands, instructor_commands
from grader.cli.output import bug, complain
from grader.errors import GraderError
from grader.version import __version__


class _Group(typer.core.TyperGroup):
    """Turns errors of all commands into a sentence and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except GraderError as error:
            complain(str(error))
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            complain("Stopped.")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # `grader exercises | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except Exception as error:
            if type(error).__module__.startswith(("typer", "click")):  # wrong arguments, or an end: typer's own
                raise
            complain(bug(error))
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn to program a GPU, and be graded by a judge that can be trusted.",
)
app.command(context_settings={"allow_extra_args": True})(course_commands.lab)
app.command()(course_commands.doctor)
app.command()(course_commands.build)
app.command()(course_commands.pages)
app.command()(grading_commands.exercises)
app.command()(grading_commands.check)
app.command()(grading_commands.grade)
app.command()(grading_commands.explain)
app.command()(grading_commands.submit)
app.add_typer(course_commands.app, name="exercise")
app.add_typer(instructor_commands.class_app, name="classroom")
app.add_typer(instructor_commands.board_app, name="leaderboard")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    app(prog_name="grader")
