"""Boards as HTML and as text: numbers, the interval plot, the templates."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2

from grader.feedback.style import NO_TEX
from grader.feedback.words import on_one_line
from grader.leaderboard.ranking import TIES_WITHIN, Interval, Row, Unranked
from grader.leaderboard.standings import Board

__all__ = ["Axis", "as_text", "fragment", "page"]

_BESIDE = "These notes change no rank: they say what a person may want to look at."
_MARK = " †"
_WIDTH, _MARGIN = 224.0, 20.0  # of the interval plot, in its own units


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of ratios that all rows of a board share, with the baseline's 1 on it."""

    low: float
    high: float

    @classmethod
    def over(cls, rows: Sequence[Row]) -> Axis | None:
        """The axis on which every interval of `rows` and the baseline fit; None where there is no ratio."""
        ratios = [row.ratio for row in rows if row.ratio]
        if not ratios:
            return None
        low, high = min(1.0, *(r.low for r in ratios)), max(1.0, *(r.high for r in ratios))
        return cls(low, high if high > low * 1.01 else low * 1.01)

    def x(self, ratio: float) -> float:
        """Where a ratio lies, in the plot's units."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The baseline and the ends, less those that would touch another's label."""
        kept: list[tuple[float, str]] = []
        for ratio in (1.0, self.high, self.low):
            if all(abs(self.x(ratio) - x) > 40 for x, _ in kept):
                kept.append((self.x(ratio), f"{ratio:.3g}×"))
        return kept


class _Numbers:
    """The numbers of a board as text, with as many decimals in every row."""

    def __init__(self, board: Board) -> None:
        fastest = min((row.time_us.value for row in board.rows), default=1.0)
        self.decimals = max(0, 3 - max(0, math.floor(math.log10(fastest))))

    def time(self, time: float) -> str:
        return f"{time:,.{self.decimals}f}"

    def time_interval(self, time: Interval) -> str:
        return f"{self.time(time.low)}–{self.time(time.high)}"

    @staticmethod
    def ratio(ratio: float) -> str:
        return f"{ratio:.3f}"

    @staticmethod
    def ratio_interval(ratio: Interval) -> str:
        return f"{ratio.low:.3f}–{ratio.high:.3f}"

    @staticmethod
    def share(share: float | None) -> str:
        return f"{100 * share:.1f} %" if share is not None else "–"


def page(template: str, **values: Any) -> str:
    """A whole HTML page from `templates/<template>.html.j2`; everything put into it is escaped."""
    return _templates().get_template(f"{template}.html.j2").render(**values)


def fragment(found: Sequence[Board], message: str) -> str:
    """HTML to stand inside a notebook's output: the tables with their own style, or the message."""
    return page("notebook", boards=found, message=message)


def as_text(found: Sequence[Board], message: str, names: Mapping[str, str] | None = None) -> str:
    """Tables for a terminal. `names`: pseudonym to student, for the instructor's eyes."""
    if not found:
        return message
    return "\n\n".join(_text_table(board, names or {}) for board in found)


def _text_table(board: Board, names: Mapping[str, str]) -> str:
    numbers = _Numbers(board)
    head = ["rank", "name", "µs a launch", "95 %"]
    head += [f"× {board.baseline}", "95 %"] if board.baseline else []
    head += ["of roofline"] if board.ceiling else []
    table = [head]
    for row in board.rows:
        line = [f"{row.rank}{'=' if row.tied else ''}", row.pseudonym + (_MARK if row.remarks else "")]
        line += [numbers.time(row.time_us.value), numbers.time_interval(row.time_us)]
        if row.ratio:
            line += [numbers.ratio(row.ratio.value), numbers.ratio_interval(row.ratio)]
        table.append([*line, numbers.share(row.share_of_roofline)] if board.ceiling else line)
    if names:
        for line, row in zip(table[1:], board.rows, strict=True):
            line.append(on_one_line(names.get(row.pseudonym, "")))
        table[0].append("student")
    widths = [max(len(line[column]) for line in table) for column in range(len(head))]
    lines = [f"{board.title} · {board.gpu or 'no GPU'} · {day(board.measured_at)}"]
    if board.rows:
        for line in table:
            cells = (
                cell.ljust(width) if column == 1 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            lines.append("  ".join(cells).rstrip())
    for entry in board.unranked:
        who = f" ({on_one_line(names[entry.pseudonym])})" if entry.pseudonym in names else ""
        lines.append(f"   –  {entry.pseudonym}{_MARK if entry.remarks else ''}{who}: {entry.reason}")
    entries: list[Row | Unranked] = [*board.rows, *board.unranked]
    noted = [each for each in entries if each.remarks]
    lines += [f"{_MARK.strip()} {_BESIDE}"] if noted else []
    lines += [f"   {each.pseudonym}: {on_one_line(remark)}" for each in noted for remark in each.remarks]
    return "\n".join(lines)


def day(iso: str) -> str:
    """A date to read, from an ISO 8601 time."""
    when = datetime.fromisoformat(iso)
    return f"{when.day} {when:%B %Y}"


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.leaderboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(axis_over=Axis.over, numbers_of=_Numbers, beside_ranks=_BESIDE, no_tex=NO_TEX)
    environment.globals["ties_within"] = f"{100 * TIES_WITHIN:g}"
    environment.filters["day"] = day
    return environment
