"""Shared options of the commands, and their output: text or JSON on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import sys
import time
import traceback
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from grader.hardware import cache_folder
from grader.words import harmless


class Device(StrEnum):
    auto = "auto"
    cuda = "cuda"
    simulator = "simulator"


AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
OnDevice = Annotated[Device, typer.Option("--device", help="Where it runs; auto is the GPU if there is one.")]
NoSandbox = Annotated[
    bool, typer.Option("--no-sandbox", help="Run submissions without a sandbox: they can do whatever you can.")
]
PracticeClock = Annotated[
    bool, typer.Option("--practice-clock", help="Accept times that a submission can falsify: see SECURITY.md.")
]
CourseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The course folder.")]
OfCourse = Annotated[
    Path, typer.Option("--course", metavar="DIR", help="The course folder, or a folder of NAME.py files.")
]
StoreFile = Annotated[
    Path | None, typer.Option("--store", metavar="FILE", help="The store; by default leaderboard.sqlite in the course.")
]


def answer(as_json: bool, data: Any, text: str) -> None:
    """Print `data` as JSON, or `text`."""
    if as_json:
        print_json(data)
    else:
        typer.echo(harmless(text))


def print_json(data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False)
    typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def report(result: Any, as_json: bool) -> None:
    """Print a result of `grader.classroom.class_actions` and exit."""
    answer(as_json, result.to_dict(), result.to_text())
    raise typer.Exit(0 if result.ok else 1)


def complain(sentence: str) -> None:
    typer.echo(harmless(sentence), err=True)


def bug(error: Exception) -> str:
    """A sentence about an unexpected error, whose traceback is written to a file."""
    sentence = f"This is a bug in the grader, please report it: {type(error).__name__}: {error}"
    path = cache_folder() / "bug.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return sentence
    return f"{sentence} (the traceback is in {path})"


class Progress:
    """One line on stderr that is overwritten. Without a terminal: with `lines` a line per step, else nothing.

    With at least one step done, the time left is estimated from the steps before.
    """

    def __init__(self, lines: bool = False) -> None:
        self._lines = lines
        self._shown = 0
        self._told = (-1, -1)  # the step, as done and total
        self._begun = 0.0  # when the first of these steps began

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, text: str, done: int, total: int) -> None:
        is_new, is_terminal = (done, total) != self._told, sys.stderr.isatty()
        if total != self._told[1] or done == 0:
            self._begun = time.monotonic()
        self._told = (done, total)
        if not is_terminal and not (self._lines and is_new):
            return
        line = f"{text} ({done}/{total})" if total else text
        if 0 < done < total:
            line += f", about {duration((time.monotonic() - self._begun) / done * (total - done))} left"
        line = harmless(line).replace("\n", " ")[:100]
        if is_terminal:
            print(f"\r{line:<{self._shown}}", end="", file=sys.stderr, flush=True)
            self._shown = len(line)
        else:
            print(f"{datetime.now():%H:%M:%S} {line}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print(f"\r{'':<{self._shown}}\r", end="", file=sys.stderr, flush=True)
            self._shown = 0


def duration(seconds: float) -> str:
    """A rough duration, such as "40 s", "12 min" or "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
