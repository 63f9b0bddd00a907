"""Numbers in prose: Markdown cells are Jinja templates. Their delimiters do not clash with LaTeX, Markdown or code.

`⟦ expression ⟧` prints a value, `⟦% for … %⟧` is a statement, `⟦# … #⟧` is a comment. These functions exist:

- `exercise(id)`: the `Exercise` itself; `exercise("softmax").max_points`
- `gate(id, baseline)`: its speed gate against that baseline; `gate("softmax", "torch").at_least`
- `points(place)`: what a chapter or a notebook is worth; `points("03_triton")`, `points("03_triton/01_add_vectors")`
- `minutes(place)`: how long the first cells of its notebooks say that they take
- `recorded(bench=…, case=…, metric=…, gpu=…)`: the one recorded result that matches, a `Recorded`. It prints as a
  number with its unit ("3,576 GB/s", "1.52×", "93 %"). `gpu` may be part of the name, or left out if only one
  GPU matches.
- `recorded_all(…)`: all results that match, in the order of the file, for tables; any argument may be left out.

A number that is missing fails the build.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from grader.authoring.source_tree import SourceError
from grader.errors import GraderError
from grader.exercise import Exercise, Gate
from grader.results import Row
from grader.words import plural

_MINUTES = re.compile(r"\babout (\d+) minutes\b")


class Recorded(Row):
    """A row that prints as prose needs it."""

    @property
    def number(self) -> str:
        """The value alone: three digits, a share in percent, thousands with commas."""
        if self.metric.startswith("share_of_") and self.unit != "%":
            return f"{100 * self.value:.0f}"
        return _digits(self.value)

    def __str__(self) -> str:
        if self.metric.startswith("ratio_vs_"):
            return f"{self.number}×"
        unit = "%" if self.metric.startswith("share_of_") else self.unit
        return f"{self.number} {unit}".strip()


class Results:
    """The recorded results of a folder, read on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def rows(self) -> list[Recorded]:
        """Every row of every file.

        Raises:
            SourceError: a file is not a list of rows.
        """
        return [row for path in sorted(self.folder.glob("*.json")) for row in _rows(path)]

    def all(self, **wanted: Any) -> list[Recorded]:
        """The rows that match, at least one.

        Raises:
            SourceError: no row matches; the message lists the recorded ones.
        """
        if unknown := set(wanted) - {"bench", "case", "metric", "gpu"}:
            raise SourceError(f"recorded() takes bench, case, metric and gpu, not {', '.join(sorted(unknown))}.")
        found = self.rows
        for key in ("bench", "case", "metric", "gpu"):
            if key not in wanted:
                continue
            known = list(dict.fromkeys(str(getattr(row, key)) for row in found))
            fits = _fits(key, str(wanted[key]), known)
            if not fits:
                asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
                listed = "; ".join(known) or "nothing"
                raise SourceError(
                    f"recorded({asked}): no recorded result has this {key}; there is: {listed}. `make bench` on a GPU "
                    "machine records results in benchmarks/results/."
                )
            found = [row for row in found if str(getattr(row, key)) in fits]
        return found

    def one(self, **wanted: Any) -> Recorded:
        """The row that matches.

        Raises:
            SourceError: no row matches, or more than one.
        """
        found = self.all(**wanted)
        if len(found) > 1:
            differing = [
                f"{key}: {'; '.join(values)}"
                for key in ("bench", "case", "metric", "gpu")
                if len(values := list(dict.fromkeys(str(getattr(row, key)) for row in found))) > 1
            ]
            asked = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
            among = "; ".join(differing) or "the same was recorded twice"
            raise SourceError(f"recorded({asked}): {plural(len(found), 'recorded result')} match ({among}); say which.")
        return found[0]


def renderer(exercises: Mapping[str, Exercise], results: Results, source: Path) -> Callable[[str], str]:
    """A function that fills the numbers into the text of a Markdown cell. The function raises SourceError.

    `source` is the folder with the source notebooks.
    """

    def exercise(exercise_id: str) -> Exercise:
        if exercise_id not in exercises:
            raise SourceError(f"there is no exercise {exercise_id!r}; the exercises are: {', '.join(exercises)}.")
        return exercises[exercise_id]

    def gate(exercise_id: str, baseline: str) -> Gate:
        gates = exercise(exercise_id).gates
        for candidate in gates:
            if candidate.baseline == baseline:
                return candidate
        known = ", ".join(candidate.baseline for candidate in gates) or "none"
        raise SourceError(f"{exercise_id!r} has no gate against {baseline!r}; it has: {known}.")

    def points(place: str) -> float:
        found = [
            each.max_points for each in exercises.values() if place in (each.chapter, f"{each.chapter}/{each.notebook}")
        ]
        if not found and not (source / f"{place}.py").is_file():  # a notebook may be for reading only
            raise SourceError(f"there is no exercise in {place!r}.")
        return sum(found)

    def minutes(place: str) -> int:
        inside = source / f"{place}.py"
        said = [_MINUTES.search(each.read_text(encoding="utf-8")) for each in [inside, *(source / place).glob("*.py")]
                if each.is_file()]  # fmt: skip
        if not said or not all(said):
            raise SourceError(f'a notebook of {place!r} does not say "about … minutes", or there is none.')
        return sum(int(found[1]) for found in said if found)

    environment = jinja2.Environment(
        variable_start_string="⟦",
        variable_end_string="⟧",
        block_start_string="⟦%",
        block_end_string="%⟧",
        comment_start_string="⟦#",
        comment_end_string="#⟧",
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: f"{value:g}" if isinstance(value, float) else value,
        autoescape=False,  # Markdown, not HTML
    )
    known = {
        "exercise": exercise,
        "gate": gate,
        "minutes": minutes,
        "points": points,
        "recorded": results.one,
        "recorded_all": results.all,
    }

    def render(text: str) -> str:
        try:
            return environment.from_string(text, globals=known).render()
        except GraderError as error:
            raise SourceError(str(error)) from None
        except jinja2.TemplateError as error:
            raise SourceError(f"a number in the prose cannot be filled in: {error.message}.") from None
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise SourceError(f"a number in the prose cannot be filled in: {error}.") from None

    return render


def _rows(path: Path) -> list[Recorded]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(f"benchmarks/results/{path.name} is not JSON: {error}.") from None
    if not isinstance(data, list):
        raise SourceError(f"benchmarks/results/{path.name} is not a list of rows.")
    rows = []
    for number, row in enumerate(data, start=1):
        names = [field.name for field in fields(Row)]
        missing = [name for name in names if not isinstance(row, dict) or (name not in row and name != "date")]
        if missing:
            raise SourceError(f"benchmarks/results/{path.name}: row {number} is missing {', '.join(missing)}.")
        rows.append(Recorded(**{name: row[name] for name in names if name in row}))
    return rows


def _fits(key: str, wanted: str, known: list[str]) -> list[str]:
    if wanted in known:
        return [wanted]
    return [name for name in known if key == "gpu" and wanted.lower() in name.lower()]


def _digits(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if 1 <= abs(value) < 10 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
