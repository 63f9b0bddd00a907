"""Causes in what the host does in each call: it waits for the GPU, builds a kernel again, or asks for properties."""

from __future__ import annotations

from collections.abc import Iterator

from grader.bottleneck.evidence import Evidence
from grader.exercise import Exercise
from grader.verdict import Cause

__all__ = ["BUILD_EACH_TIME", "host_work"]

BUILD_EACH_TIME = ("ls_cupy_baseline",)  # the rung before the cached one


def host_work(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Work of the host that was seen in a later call for the same case: so it is done in each call."""
    run = evidence.largest
    for each in run.host if run is not None else ():
        if each.kind == "waits":
            seen = (
                "This line fetches a value from the GPU, as an `if` or an `assert` on a tensor does: the host waits "
                "until the GPU has computed it."
            )
            cure = "Leave the values on the GPU and compute with them there: `torch.where` can replace an `if`"
            yield Cause("waits for the GPU", seen, cure, "calls", each.line)
        elif each.kind == "builds" and exercise.id not in BUILD_EACH_TIME:
            seen = f"A later call for the same sizes built `{each.name}` again."
            cure = "Build it once, and keep it at the top of the cell or in a dictionary there"
            yield Cause("built in each call", seen, cure, "calls", each.line)
        elif each.kind == "asks":
            seen = f"Each call asks the driver with `{each.name}`, which can take longer than the kernel."
            cure = "Ask once, at the top of the cell or in a function with `@functools.cache`"
            yield Cause("host time", seen, cure, "calls", each.line)
