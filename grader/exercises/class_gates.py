"""A class's own points, gates and limits: `gates.toml` in the course folder changes them for exercises by id.

    [softmax]
    points = 5                    # for a correct solution
    wall_limit_s = 180            # or time_limit_s, case_limit_s, round_limit_s

    [[softmax.gates]]             # these replace all gates of the exercise
    baseline = "torch"
    at_least = 1.05
    points = 2
    or_share = 0.85               # of the roofline, optional
    cases = ["4096 × 4096"]       # optional: by default all timed cases

The rest stays as it is.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from grader.errors import UnusableExercise
from grader.exercise import Exercise, Gate

NAME = "gates.toml"
_LIMITS = ("time_limit_s", "case_limit_s", "round_limit_s", "wall_limit_s")
_MOST = 1_000_000  # points, seconds, or times as fast
_OF_EXERCISE = ("points", "gates", *_LIMITS)
_OF_GATE = ("baseline", "at_least", "points", "or_share", "cases")


class _Fault(Exception):
    """A mistake, in one sentence that begins with its place in the file."""


def changed(exercises: Mapping[str, Exercise], file: Path) -> dict[str, Exercise]:
    """The exercises with the changes of a `gates.toml`.

    Raises:
        UnusableExercise: the file cannot be read, or asks for something that does not exist or makes no sense.
    """
    try:
        asked = tomllib.loads(file.read_text(encoding="utf-8"))
        for name in asked:
            _must_be_known(f"[{name}]", name, exercises, "exercise")
        return {name: _changed(each, asked[name]) if name in asked else each for name, each in exercises.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, _Fault) as error:
        said = str(error).rstrip(".")
        raise UnusableExercise(f"{file}: {said}. Nothing is graded here until the file is right.") from None


def as_toml(exercise: Exercise) -> str:
    """The points, gates and limits of an exercise as a part of a `gates.toml`, to be changed."""
    lines = [f"[{exercise.id}]", f"points = {exercise.correctness_points:g}"]
    lines += [f"{name} = {getattr(exercise, name):g}" for name in _LIMITS]
    for gate in exercise.gates:
        lines += ["", f"[[{exercise.id}.gates]]", f"baseline = {json.dumps(gate.baseline)}"]
        lines += [f"at_least = {gate.at_least:g}", f"points = {gate.points:g}"]
        lines += [] if gate.or_share is None else [f"or_share = {gate.or_share:g}"]
        lines += [f"cases = {json.dumps(list(gate.cases), ensure_ascii=False)}"]
    return "\n".join(lines)


def _changed(exercise: Exercise, asked: Any) -> Exercise:
    place = f"[{exercise.id}]"
    _must_be_a_table(place, asked, _OF_EXERCISE)
    limits: dict[str, Any] = {
        name: _number(f"{place}, {name}", asked[name], above_zero=True) for name in _LIMITS if name in asked
    }
    points = _number(f"{place}, points", asked.get("points", exercise.correctness_points))
    gates = exercise.gates
    if "gates" in asked:
        if not isinstance(asked["gates"], list):
            raise _Fault(f"{place} gates: write each gate as `[[{exercise.id}.gates]]`.")
        gates = tuple(_gate(exercise, number, each) for number, each in enumerate(asked["gates"], 1))
    if points + sum(gate.points for gate in gates) == 0:
        raise _Fault(f"{place}: no points are left.")
    return replace(exercise, correctness_points=points, gates=gates, changed_by=NAME, **limits)


def _gate(exercise: Exercise, number: int, asked: Any) -> Gate:
    place = f"[[{exercise.id}.gates]] number {number}"
    timed = tuple(case.name for case in exercise.timed_cases)
    if not timed:
        raise _Fault(f"{place}: this exercise is not timed, so it can have no gate.")
    _must_be_a_table(place, asked, _OF_GATE)
    if missing := [name for name in ("baseline", "at_least", "points") if name not in asked]:
        raise _Fault(f"{place}: `{missing[0]}` is missing.")
    _must_be_known(f"{place}", asked["baseline"], [each.id for each in exercise.baselines], "baseline")
    cases = asked.get("cases", timed)
    if not isinstance(cases, list | tuple) or not cases:
        raise _Fault(f"{place}, cases: it must be a list of timed cases.")
    for case in cases:
        _must_be_known(f"{place}, cases", case, timed, "timed case")
    return Gate(
        asked["baseline"],
        _number(f"{place}, at_least", asked["at_least"], above_zero=True),
        _number(f"{place}, points", asked["points"]),
        tuple(cases),
        _number(f"{place}, or_share", asked["or_share"], above_zero=True) if "or_share" in asked else None,
    )


def _must_be_a_table(place: str, asked: Any, known: Any) -> None:
    if not isinstance(asked, dict):
        raise _Fault(f"{place}: it must be a table.")
    for name in asked:
        _must_be_known(place, name, known, "key")


def _must_be_known(place: str, name: Any, known: Any, kind: str) -> None:
    if name in known:
        return
    close = get_close_matches(str(name), known, 1)
    meant = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(known) or 'none'}."
    raise _Fault(f"{place}: there is no {kind} {name!r}. {meant}")


def _number(place: str, value: Any, above_zero: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value < float("inf")):
        raise _Fault(f"{place}: it must be a number, and not negative.")
    if above_zero and not value:
        raise _Fault(f"{place}: it must be above 0.")
    if value > _MOST:
        raise _Fault(f"{place}: it must be at most {_MOST:,}.")
    return value
