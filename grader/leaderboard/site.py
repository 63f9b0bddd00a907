"""The published leaderboard: a self-contained static site and `standings.json`; also the tables as text."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from grader.errors import GraderError
from grader.exercises import EXERCISES
from grader.feedback.report import NO_TEX
from grader.files import write_in_one_step
from grader.leaderboard.ranking import TIES_WITHIN, Interval, Row, Unranked
from grader.leaderboard.standings import FLOOR, MADE_BY, Board, Ghost, boards, course_boards, to_json
from grader.words import on_one_line

if TYPE_CHECKING:
    from grader.leaderboard.store import Store

_BESIDE = "These notes change no rank: they tell the instructor what to look at."
_MARK = " †"
_WIDTH, _MARGIN = 224.0, 20.0  # of the interval plot


@dataclass(frozen=True)
class Axis:
    """The logarithmic axis of a board's ratios, which includes the baseline's 1."""

    low: float
    high: float

    @classmethod
    def over(cls, rows: Sequence[Row]) -> Axis | None:
        """The axis that fits every interval of `rows` and the baseline; None if there is no ratio."""
        ratios = [row.ratio for row in rows if row.ratio]
        if not ratios:
            return None
        low, high = min(1.0, *(r.low for r in ratios)), max(1.0, *(r.high for r in ratios))
        return cls(low, high if high > low * 1.01 else low * 1.01)

    def x(self, ratio: float) -> float:
        """The position of a ratio in the plot."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The positions and labels of the baseline and the ends, without labels that would overlap."""
        kept: list[tuple[float, str]] = []
        for ratio in (1.0, self.high, self.low):
            if all(abs(self.x(ratio) - x) > 40 for x, _ in kept):
                kept.append((self.x(ratio), f"{ratio:.3g}×"))
        return kept


class _Numbers:
    """Formats a board's numbers, with the same number of decimals in every row."""

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
    """The HTML page of `templates/<template>.html.j2`; all values are escaped."""
    return _templates().get_template(f"{template}.html.j2").render(**values)


def as_text(found: Sequence[Board], message: str, names: Mapping[str, str] | None = None) -> str:
    """Tables for a terminal. `names`, from pseudonym to student, is for the instructor only."""
    if not found:
        return message
    return "\n\n".join(_text_table(board, names or {}) for board in found)


def _text_table(board: Board, names: Mapping[str, str]) -> str:
    numbers = _Numbers(board)
    head = ["rank", "name", "µs per launch", "95 %"]
    head += [f"× {board.baseline}", "95 %"] if board.baseline else []
    head += ["of roofline"] if board.ceiling else []
    table = [head]
    for row in board.lines:
        if isinstance(row, Ghost):
            line = ["–", row.name, numbers.time(row.time_us), ""]
            line += [numbers.ratio(row.ratio) if row.ratio else "", ""] if board.baseline else []
            table.append([*line, numbers.share(row.share_of_roofline)] if board.ceiling else line)
            continue
        line = [f"{row.rank}{'=' if row.tied else ''}", row.pseudonym + (_MARK if row.remarks else "")]
        line += [numbers.time(row.time_us.value), numbers.time_interval(row.time_us)]
        if row.ratio:
            line += [numbers.ratio(row.ratio.value), numbers.ratio_interval(row.ratio)]
        table.append([*line, numbers.share(row.share_of_roofline)] if board.ceiling else line)
    if names:
        for line, row in zip(table[1:], board.lines, strict=True):
            line.append("" if isinstance(row, Ghost) else on_one_line(names.get(row.pseudonym, "")))
        table[0].append("student")
    widths = [max(len(line[column]) for line in table) for column in range(len(head))]
    lines = [f"{board.title} · {board.gpu or 'no GPU'} · {day(board.measured_at)}"]
    lines += [f"Counts work submitted by {moment(board.due)}, or within an extension."] if board.due else []
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
    """A date such as 3 May 2026, from an ISO 8601 time."""
    when = datetime.fromisoformat(iso)
    return f"{when.day} {when:%B %Y}"


def moment(iso: str) -> str:
    """A time such as 3 May 2026, 18:00 UTC, from an ISO 8601 time in UTC."""
    return f"{day(iso)}, {datetime.fromisoformat(iso):%H:%M} UTC"


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("grader.leaderboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        axis_over=Axis.over,
        numbers_of=_Numbers,
        beside_ranks=_BESIDE,
        no_tex=NO_TEX,
        ties_within=f"{100 * TIES_WITHIN:g}",
        floor=f"{FLOOR:g}",
    )
    environment.filters |= {"day": day, "moment": moment}
    return environment


_MARKS = (f'<meta name="generator" content="{MADE_BY}">', f'"made_by": "{MADE_BY}"')


@dataclass(frozen=True)
class PublishReport:
    """The published files. `left_out` has a sentence for each exercise that could not be published."""

    dest: Path
    files: tuple[str, ...]
    exercises: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.left_out

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        return {**asdict(self), "dest": str(self.dest)}

    def as_text(self) -> str:
        """A few lines for a terminal."""
        exercises = ", ".join(self.exercises) or "no exercise: nothing has been measured yet"
        return "\n".join([f"Published {exercises}.", *self.left_out, f"Open {self.dest / 'index.html'}"])


def publish(store: Store, dest: Path | str, notes: bool = False) -> PublishReport:
    """Write the site of everything in `store` to the folder `dest`: each file atomically, `index.html` last.

    With `notes`, the notes to the instructor are shown, such as that a submission calls a library. Files of an earlier
    publication are replaced; other files are kept. An exercise whose page fails is left out.

    Raises:
        GraderError: `dest` cannot be written, has the store in it or a file of the same name that the leaderboard did
            not write; or no page could be made.
    """
    dest = Path(dest).absolute()
    found: list[Board] = []
    texts: dict[str, str] = {}
    left_out = []
    for exercise in EXERCISES.values():
        try:
            own = boards(store, exercise.id)
            own = own if notes else [board.without_remarks() for board in own]
            text = page("exercise", made_by=MADE_BY, title=exercise.title, boards=own) if own else ""
            (text + to_json(own)).encode()  # raises for text that cannot be written
        except GraderError:
            raise  # the store cannot be read
        except Exception as error:  # one exercise must not keep the others from being published
            left_out.append(
                f"{exercise.id} is left out: its page cannot be made ({type(error).__name__}). A page published before "
                "is kept."
            )
            continue
        if own:
            found += own
            texts[f"{exercise.id}.html"] = text
    if left_out and not found:
        raise GraderError(f"Nothing was published: {' '.join(left_out)}")
    exercises = tuple(dict.fromkeys(board.exercise for board in found))
    texts["standings.json"] = to_json(found)
    course = course_boards(found)
    if course or os.path.exists(dest / "course.html"):  # an earlier one may show a student who is hidden now
        texts["course.html"] = page("course", made_by=MADE_BY, boards=course)
    texts["index.html"] = page("index", made_by=MADE_BY, boards=found, course=course)
    if store.path.resolve().is_relative_to(dest.resolve()):
        raise GraderError(
            f"{dest} has the store {store.path.name} in it, with the students' names, which must not be served; "
            "publish to another folder."
        )
    try:
        dest.mkdir(parents=True, exist_ok=True)
        for name in texts:
            _refuse_other_files(dest / name)
        for name, text in texts.items():
            write_in_one_step(dest / name, text, 0o644)  # for the web server's user
    except OSError as error:
        raise GraderError(f"The leaderboard cannot be written to {dest}: {error.strerror or error}.") from error
    return PublishReport(dest, tuple(texts), exercises, tuple(left_out))


def _refuse_other_files(path: Path) -> None:
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        start = file.read(4096)
    if not any(mark in start for mark in _MARKS):
        raise GraderError(f"{path} was not made by the leaderboard, so it is kept; publish to another folder.")
