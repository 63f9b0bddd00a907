"""The Lomb–Scargle ladder as its authors published it, for a V100, with what was recorded for this course beside it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from grader.explore.results import Recorded, recorded

__all__ = ["PUBLISHED", "PublishedLadder", "published_ladder"]

# Registers and milliseconds in float32, and milliseconds in float64: 1675 samples × 2^20 frequencies. See the source.
PUBLISHED: dict[str, dict[str, tuple[int, float, float]]] = {
    "CuPy": {
        "baseline": (30, 10.02, 21.2),
        "cached": (30, 10.03, 21.2),
        "typed": (26, 10.18, 21.2),
        "fastmath": (32, 2.24, 21.2),
        "fatbin": (32, 2.25, 21.2),
        "launch_bounds": (31, 2.24, 21.2),
        "sincos": (31, 2.24, 14.1),
    },
    "Numba": {
        "baseline": (58, 13.46, 29.6),
        "cached": (58, 13.46, 29.4),
        "typed": (40, 10.98, 29.2),
        "fastmath": (35, 10.91, 29.1),
        "registers": (32, 10.88, 29.5),
    },
}
SOURCE = (
    "Published for one V100 by the authors of cuSignal (github.com/awthomp/cusignal-icassp-tutorial): "
    "1,675 samples, 2^20 frequencies. The runs were timed with the check of their results switched off."
)  # fmt: skip
_HEAD = ("rung", "registers, V100", "ms, V100", "float64: ms, V100")


@dataclass(frozen=True)
class PublishedLadder:
    """A table: the published figures, and those that were recorded for this course (1,024 samples), where there are."""

    library: str
    ours: Recorded

    def _table(self) -> list[tuple[str, ...]]:
        head: tuple[str, ...] = _HEAD
        rows: list[tuple[str, ...]] = []
        if self.ours.rows:
            gpu = str(self.ours.rows[0]["gpu"])
            head = (*_HEAD, f"ms, {gpu}", f"float64: ms, {gpu}")
        for rung, (registers, single, double) in PUBLISHED[self.library].items():
            row: tuple[str, ...] = (rung.replace("_", " "), str(registers), f"{single:g}", f"{double:g}")
            if self.ours.rows:
                found = (self.ours.value("median_ms", f"{rung}, {dtype}") for dtype in ("float32", "float64"))
                row = (*row, *("" if value is None else f"{value:.3g}" for value in found))
            rows.append(row)
        return [head, *rows]

    @property
    def notes(self) -> str:
        """Where the numbers are from."""
        return f"{SOURCE} {self.ours.origin}"

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in table)
        return "\n".join([*lines, self.notes])

    def _repr_html_(self) -> str:
        head, *body = self._table()
        lines = ["<tr>" + "".join(f"<th>{escape(text)}</th>" for text in head) + "</tr>"]
        lines += ["<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in body]
        return f"<table>{''.join(lines)}</table><p>{escape(self.notes)}</p>"


def published_ladder(library: str) -> PublishedLadder:
    """The rungs of `library`, "CuPy" or "Numba".

    Raises:
        ValueError: nothing was published for another one.
    """
    if library not in PUBLISHED:
        raise ValueError(f"There are figures for {' and '.join(PUBLISHED)}, none for {library!r}.")
    return PublishedLadder(library, recorded(f"ladder/{library.lower()}", "median_ms"))
