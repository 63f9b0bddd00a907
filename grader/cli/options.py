"""The options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "CourseFolder", "Device", "NoSandbox", "OfCourse", "OnDevice", "StoreFile"]


class Device(StrEnum):
    """Where submissions run."""

    auto = "auto"
    cuda = "cuda"
    simulator = "simulator"


AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
OnDevice = Annotated[Device, typer.Option("--device", help="Where it runs; auto is the GPU where there is one.")]
NoSandbox = Annotated[
    bool, typer.Option("--no-sandbox", help="Run submissions without one: they can do here whatever you can.")
]
CourseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The course folder.")]
OfCourse = Annotated[Path, typer.Option("--course", metavar="DIR", help="The course folder, or one of NAME.py files.")]
StoreFile = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The database; by default leaderboard.sqlite in the course."),
]
