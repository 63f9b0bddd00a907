"""Shared options of the commands, and their output: text or JSON on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import sys
import traceback
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
    """One line on stderr that is overwritten; silent if stderr is not a terminal."""

    def __init__(self) -> None:
        self._shown = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, text: str, done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        line = f"{text} ({done}/{total})" if total else text
        line = harmless(line).replace("\n", " ")[:100]
        print(f"\r{line:<{self._shown}}", end="", file=sys.stderr, flush=True)
        self._shown = len(line)

    def clear(self) -> None:
        if self._shown:
            print(f"\r{'':<{self._shown}}\r", end="", file=sys.stderr, flush=True)
            self._shown = 0
