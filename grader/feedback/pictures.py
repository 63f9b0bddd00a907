"""Inline SVG for the report: a map of the wrong elements of an output, and bars for speed. No ids, no scripts."""

from __future__ import annotations

import math
from html import escape

from grader.bottleneck.time_model import Roofline
from grader.verdict import GateResult, Mismatch
from grader.words import count, plural

_HATCH = 6.0
_THIN = 3.0
_STRIP = 14.0  # thickness of the strip for writes outside the output


def map_of(mismatch: Mismatch, side: str = "") -> str:
    """The output's index space with a hatched rectangle around all wrong elements, or an empty text.

    `side` says where elements were written outside the output: "before", "between" its rows, "after", or empty.
    A single element, or an output that is wrong everywhere, gets no map.
    """
    size = _rows_columns(mismatch.shape)
    if size is None or mismatch.total < 2 or (mismatch.wrong == mismatch.total and not side):
        return ""
    rows, columns = size
    wide = 300.0 if rows == 1 else min(260.0, max(90.0, 130.0 * columns / rows))
    tall = 24.0 if rows == 1 else min(130.0, max(36.0, 260.0 * rows / columns))
    left, top = (2.0 if rows == 1 else 44.0), 20.0
    if side == "before":
        left, top = (left + _STRIP, top) if rows == 1 else (left, top + _STRIP)
    parts = [_rect("gr-map", left, top, wide, tall)]
    if mismatch.wrong and mismatch.region_low:
        low, high = _corners(mismatch, rows)
        x, w = _scaled(low[1], high[1], columns, wide)
        y, h = _scaled(low[0], high[0], rows, tall)
        parts += [_rect("gr-wrong", left + x, top + y, w, h), _hatch(left + x, top + y, w, h)]
    if side:
        x, y, w, h = _outside(side, rows == 1, left, top, wide, tall)
        parts += [_rect("gr-outside", x, y, w, h), _hatch(x, y, w, h)]
    parts.append(_text(left, top - 6 - (_STRIP if side == "before" and rows > 1 else 0), "0"))
    parts.append(_text(left + wide, top - 6, count(columns - 1), "end"))
    if rows > 1:
        parts += [_text(left - 6, top + 10, "0", "end"), _text(left - 6, top + tall, count(rows - 1), "end")]
    height = top + tall + 4 + (_STRIP if side == "after" and rows > 1 else 0)
    return _svg(left + wide + _STRIP + 8, height, "".join(parts), map_alt(mismatch, side))


def map_alt(mismatch: Mismatch, side: str = "") -> str:
    """The map in words, for screen readers."""
    rows, columns = _rows_columns(mismatch.shape) or (1, mismatch.total)
    what = plural(columns, "element") if rows == 1 else f"{plural(rows, 'row')} of {plural(columns, 'element')}"
    said = [f"Map of {mismatch.output}: {what}."]
    if mismatch.wrong and mismatch.region_low:
        low, high = _corners(mismatch, rows)
        inside = f"{'elements' if rows == 1 else 'columns'} {low[1]} to {high[1]}"
        inside += f" of rows {low[0]} to {high[0]}" if rows > 1 else ""
        said.append(f"All wrong elements lie in {inside}.")
    if side:
        where = {"before": "before its start", "between": "between its rows", "after": "past its end"}[side]
        said.append(f"Elements were written {where}.")
    return " ".join(said)


def gate_bar(gate: GateResult) -> str:
    """A bar from 0 to the measured ratio, with its interval and the gate's mark. The text next to it says the same."""
    if gate.ratio is None:
        return ""
    wide, tall = 420.0, 26.0
    low, high = gate.low or gate.ratio, gate.high or gate.ratio
    full = 1.15 * max(gate.at_least, high, 1.0)
    x = {name: wide * value / full for name, value in
         {"ratio": gate.ratio, "low": low, "high": high, "gate": gate.at_least}.items()}  # fmt: skip
    good = "gr-bar-good" if gate.outcome in ("passed", "doubt") else "gr-bar-bad"
    parts = [
        _rect("gr-track", 0, 6, wide, 12),
        _rect(good, 0, 6, x["ratio"], 12),
        _line("gr-whisker", x["low"], 12, x["high"], 12),
        _line("gr-whisker", x["low"], 8, x["low"], 16),
        _line("gr-whisker", x["high"], 8, x["high"], 16),
        _line("gr-gate", x["gate"], 1, x["gate"], 23),
        f'<path class="gr-mark" d="M{x["gate"] - 5:.1f} 0h10l-5 6z"/>',
    ]
    return _svg(wide, tall, "".join(parts))


def share_bar(share: float) -> str:
    """A bar for a share of the roofline: its full length is the measured copy bandwidth."""
    wide = 90.0
    return _svg(wide, 10, _rect("gr-track", 0, 1, wide, 8) + _rect("gr-bar-good", 0, 1, wide * min(share, 1.0), 8))


def roofline(point: Roofline) -> str:
    """The two ceilings of the GPU on logarithmic axes, and the kernel below them. `Roofline.in_words` says the same."""
    wide, tall, left = 320.0, 120.0, 50.0
    ridge = 1e3 * point.peak_tflops / point.copy_gbps
    first, last = math.log10(min(point.intensity, ridge)) - 0.7, math.log10(max(point.intensity, ridge)) + 0.7
    top = math.log10(point.peak_tflops)
    bottom = min(top - 1, math.log10(point.tflops)) - 0.5

    def at(intensity: float, tflops: float) -> tuple[float, float]:
        x = (math.log10(intensity) - first) / (last - first)
        y = (top + 0.2 - math.log10(tflops)) / (top + 0.2 - bottom)
        return left + wide * x, tall * min(1.0, y)

    lowest = max(10**first, 1e3 * 10**bottom / point.copy_gbps)
    start, corner, end = at(lowest, lowest * point.copy_gbps / 1e3), at(ridge, point.peak_tflops), at(10**last, 10**top)
    x, y = at(point.intensity, point.tflops)
    roof = at(point.intensity, point.tflops / point.share)
    parts = [
        _line("gr-gate", *start, *corner),
        _line("gr-gate", *corner, *end),
        _line("gr-whisker", x, y, *roof),
        f'<circle class="gr-mark" cx="{x:.1f}" cy="{y:.1f}" r="5"/>',
        _text(left + wide, corner[1] - 6, f"{point.peak_tflops:.0f} TFLOPS", "end"),
        _text((start[0] + corner[0]) / 2 - 8, (start[1] + corner[1]) / 2 - 4, f"{point.copy_gbps:,.0f} GB/s", "end"),
        _text(x + 9, y + 4, f"{point.share_in_words} of the roofline"),
    ]
    return _svg(left + wide + 90, tall + 6, "".join(parts), point.in_words)


def _rows_columns(shape: tuple[int, ...]) -> tuple[int, int] | None:
    kept = [size for size in shape if size != 1]
    if len(kept) > 2 or not shape:
        return None
    if len(kept) < 2:
        return 1, kept[0] if kept else 1
    return kept[0], kept[1]


def _corners(mismatch: Mismatch, rows: int) -> tuple[tuple[int, int], tuple[int, int]]:
    kept = [axis for axis, size in enumerate(mismatch.shape) if size != 1]
    low = [mismatch.region_low[axis] for axis in kept]
    high = [mismatch.region_high[axis] for axis in kept]
    return ((0, low[0]), (0, high[0])) if rows == 1 else ((low[0], low[1]), (high[0], high[1]))


def _scaled(low: int, high: int, size: int, length: float) -> tuple[float, float]:
    """Position and length of a span of indices: never too thin to see, never past the edge."""
    long = max(_THIN, length * (high - low + 1) / size)
    return min(length * low / size, length - long), long


def _outside(side: str, vector: bool, left: float, top: float, wide: float, tall: float
             ) -> tuple[float, float, float, float]:  # fmt: skip
    if side == "between" or (side == "after" and vector):
        return left + wide, top, _STRIP, tall
    if side == "after":
        return left, top + tall, wide, _STRIP
    return (left - _STRIP, top, _STRIP, tall) if vector else (left, top - _STRIP, wide, _STRIP)


def _hatch(x: float, y: float, w: float, h: float) -> str:
    """Diagonal lines, clipped to the rectangle."""
    lines = []
    offset = _HATCH / 2
    while offset < w + h:
        x1, y1 = (x + offset, y) if offset <= w else (x + w, y + offset - w)
        x2, y2 = (x, y + offset) if offset <= h else (x + offset - h, y + h)
        lines.append(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")
        offset += _HATCH
    return f'<path class="gr-hatch" d="{"".join(lines)}"/>'


def _rect(kind: str, x: float, y: float, w: float, h: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"/>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="gr-tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(wide: float, tall: float, inside: str, alt: str = "") -> str:
    named = f'role="img" aria-label="{escape(alt)}"' if alt else 'aria-hidden="true"'
    return (
        f'<svg class="gr-svg" {named} viewBox="0 0 {wide:.0f} {tall:.0f}" width="{wide:.0f}" height="{tall:.0f}">'
        f"{inside}</svg>"
    )
