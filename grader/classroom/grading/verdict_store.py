"""The verdicts of a course, one file per text, exercise version and kind of machine: nothing is judged twice."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

from grader.exercises import find
from grader.files import write_in_one_step
from grader.hardware import gpus
from grader.leaderboard.fingerprint import fingerprint
from grader.verdict import Failure, Verdict
from grader.version import __version__

FOLDER = "verdicts"  # in the course folder
_SIMULATOR = "simulator"
_VERSIONED = ("torch", "triton", "numba", "numba-cuda", "cupy-cuda12x", "cupy-cuda13x")
_PACKAGE = Path(__file__).parents[2]
_JUDGES = ("judge", "protocol", "worker")  # folders; an exercise has its own version
# These depend on how busy the machine is, so the next grading judges again.
_TRANSIENT = ("timeout", "limit", "crash")


@dataclass(frozen=True)
class Task:
    """A text to judge: the exercise, and whether to time it and to inspect its kernels."""

    source: str
    exercise_id: str
    timed: bool = True
    kernels: bool = False


class VerdictStore:
    """The verdicts in `<course>/verdicts`, for judges with or without a sandbox. Any number of processes may share it.

    A file is replaced in one step, so a killed process leaves a complete verdict or none. A file that cannot be read
    counts as missing.
    """

    def __init__(self, course: Path, sandbox: bool) -> None:
        self._folder = Path(course) / FOLDER
        self._sandbox = sandbox
        self._version = functools.cache(exercise_version)

    def get(self, task: Task, device_class: str, since: str = "", practice_clock: bool = False) -> Verdict | None:
        """The verdict on a text by a machine of this class, if it was written at or after `since` (ISO 8601, UTC).

        If there is none, and `practice_clock` allows it, the one with times of the practice clock.

        An older one is removed, so that it cannot count later if the forced grading reaches no verdict.
        """
        for practice in (False, True) if practice_clock else (False,):
            path = self._path(task, device_class, practice)
            if path is None:
                continue
            try:
                found = json.loads(path.read_bytes())
                if found["written_at"] >= since:
                    return Verdict.from_dict(found["verdict"])
                path.unlink(missing_ok=True)
            except (OSError, ValueError, KeyError, TypeError):
                pass
        return None

    def put(self, task: Task, verdict: Verdict) -> None:
        """Keep a verdict, unless its outcome may differ the next time, or its exercise changed during this run."""
        practice = verdict.environment.practice
        path = None if is_transient(verdict) else self._path(task, class_of(verdict), practice)
        if path is not None and self._version(task.exercise_id) == exercise_version(task.exercise_id):
            document = {"written_at": now(), "verdict": replace(verdict, judged="").to_dict()}
            path.parent.mkdir(parents=True, exist_ok=True)
            write_in_one_step(path, json.dumps(document))

    def _path(self, task: Task, device_class: str, practice: bool) -> Path | None:
        """The file of a verdict; None if the exercise has no fingerprint."""
        version = self._version(task.exercise_id)
        if version is None:
            return None
        key = {
            "text": hashlib.sha256(task.source.encode("utf-8", "surrogatepass")).hexdigest(),
            "exercise": version,
            "timed": task.timed,
            "kernels": task.kernels,
            "device": device_class,
            "practice": practice,
            "sandbox": self._sandbox,
            **versions(),
        }
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self._folder / task.exercise_id / f"{name}.json"


def exercise_version(exercise_id: str) -> str | None:
    """The fingerprint of an exercise; None if it uses values that have none.

    Raises:
        UnknownExercise: no exercise has this id.
    """
    exercise = find(exercise_id)
    try:
        return fingerprint(exercise)
    except TypeError:
        return None


@functools.cache
def versions() -> dict[str, str]:
    """The versions that a verdict depends on: of the grader, Python and the packages that compile kernels."""
    found = {"grader": f"{__version__}+{_judges_code()}", "python": platform.python_version()}
    for name in _VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ""
    return found


def _judges_code() -> str:
    """A hash of the code that reaches verdicts, because a checkout changes between two versions."""
    digest = hashlib.sha256()
    for file in sorted(path for name in _JUDGES for path in (_PACKAGE / name).rglob("*.*")):
        if file.suffix in (".py", ".h", ".txt"):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def device_class(device: Literal["auto", "cuda", "simulator"], gpu: int = 0) -> str:
    """The kind of machine that a judge in this environment runs on: the model of this GPU, or "simulator"."""
    found = gpus() if device != _SIMULATOR else ()
    if 0 <= gpu < len(found):
        return found[gpu].name
    return _SIMULATOR if device != "cuda" else device


def class_of(verdict: Verdict) -> str:
    """The kind of machine that reached a verdict."""
    return _SIMULATOR if verdict.environment.device == _SIMULATOR else verdict.environment.gpu


def is_transient(verdict: Verdict) -> bool:
    """Whether a busy machine may be the reason: a limit of time or memory, a killed process, a disturbed timing.

    A verdict without a number of points, a bug of the grader, must be judged again, too.
    """
    failures: list[Failure | None] = [verdict.failure, *(case.failure for case in verdict.cases)]
    disturbed = any(finding.kind == "disturbed" for finding in verdict.findings)
    return (
        disturbed
        or not math.isfinite(verdict.points)
        or any(failure is not None and failure.kind in _TRANSIENT for failure in failures)
    )


def now() -> str:
    """The time in UTC, ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
