"""A trace as a timeline inside the notebook: to zoom with the wheel, or a picture where no script may run."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from grader.explore.picture import BLUE, DARK, GREY, ORANGE, PALE, Picture, canvas, finish
from grader.explore.traces import WORK, RecordedTrace, TraceRow, events_of, rows_of

__all__ = ["Timeline", "show_timeline"]

_SCRIPT = Path(__file__).with_name("timeline.js")
_LANE, _GAP = 0.24, 0.12  # inches
_MOST_CHARACTERS = 160  # of a name; kernels of torch have longer ones
_HIDDEN = 2e-3  # of the width: a picture cannot show less
_number = itertools.count()


@dataclass(frozen=True)
class _Style:
    label: str
    fill: str
    text: str
    hatch: bool = False


_STYLES = {
    "range": _Style("range", "#FFFFFF", DARK),
    "operation": _Style("operation", PALE, DARK),
    "runtime": _Style("call of the CUDA runtime", ORANGE, DARK),
    "kernel": _Style("kernel", BLUE, "#FFFFFF"),
    "copy": _Style("copy or fill", "#FFFFFF", GREY, hatch=True),
}
_KINDS = {
    "user_annotation": "range", "gpu_user_annotation": "range", "kernel": "kernel", "gpu_memcpy": "copy",
    "gpu_memset": "copy", "cuda_runtime": "runtime", "cuda_driver": "runtime",
}  # fmt: skip


@dataclass(frozen=True)
class Timeline:
    """Rows over time. JupyterLab lets you zoom; without scripts there is a picture, in a terminal there are words."""

    rows: tuple[TraceRow, ...]
    title: str = ""
    note: str = ""

    @property
    def end_us(self) -> float:
        return max((one.end_us for row in self.rows for one in row.slices), default=0.0)

    @property
    def alt(self) -> str:
        """What can be seen, in words."""
        name = f"“{self.title}”: a" if self.title else "A"
        return " ".join([f"{name} timeline of {_time(self.end_us)}.", *(self._about(row) for row in self.rows)])

    def _about(self, row: TraceRow) -> str:
        longest = max(row.slices, key=lambda one: (_kind(one.category) != "range", one.took_us))
        most = f"the longest {_short(longest.name)} with {_time(longest.took_us)}"
        if not row.gpu:
            return f"{row.label}: {_count(len(row.slices), 'event', 'events')}, {most}."
        work = sorted((one.start_us, one.end_us) for one in row.slices if one.category in WORK)
        kernels = sum(one.category == "kernel" for one in row.slices)
        busy, end = 0.0, 0.0
        for start, stop in work:
            busy, end = busy + max(0.0, stop - max(start, end)), max(end, stop)
        share = busy / self.end_us if self.end_us else 0.0
        others = f" and {_count(len(work) - kernels, 'copy or fill', 'copies or fills')}" if len(work) > kernels else ""
        ran = f"{_count(kernels, 'kernel', 'kernels')}{others}"
        return f"{row.label}: {ran}, at work {100 * share:.0f} % of the picture's time, {most}."

    @cached_property
    def picture(self) -> Picture:
        """The whole trace, still."""
        depth = sum(row.depth for row in self.rows)
        tall = _LANE * depth + _GAP * len(self.rows) + 0.95
        figure, axes = canvas(10, tall)
        axes.set_position((0.13, 0.62 / tall, 0.85, 1 - 0.95 / tall))
        axes.set_axis_on()
        for side in ("top", "left", "right"):
            axes.spines[side].set_visible(False)
        unit, words = (1e3, "ms") if self.end_us >= 1e3 else (1.0, "µs")
        top, ticks = 0.0, []
        for row in self.rows:
            for kind, style in _STYLES.items():
                self._bars(axes, row, kind, style, top, unit)
            ticks.append((top + _LANE / 2, row.label))
            top += _LANE * row.depth + _GAP
        axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=10)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, self.end_us / unit)
        axes.set_ylim(top, -0.04)
        axes.set_xlabel(words, fontsize=10, labelpad=1)
        self._legend(figure)
        if self.title:
            figure.text(0.13, 1 - 0.17 / tall, self.title, fontsize=11, weight="bold", va="center", color=DARK)
        return finish(figure, self.alt, width=860)

    def _bars(self, axes: Any, row: TraceRow, kind: str, style: _Style, top: float, unit: float) -> None:
        least = _HIDDEN * self.end_us
        for depth in range(row.depth):
            chosen = [one for one in row.slices if one.depth == depth and _kind(one.category) == kind]
            spans = [(one.start_us / unit, max(one.took_us, least) / unit) for one in chosen]
            hatch = "/////" if style.hatch else None
            edge = {"edgecolor": GREY if style.hatch else DARK, "linewidth": 0.4, "hatch": hatch}
            if spans:
                axes.broken_barh(spans, (top + _LANE * depth, 0.9 * _LANE), facecolor=style.fill, **edge)
            for one in chosen:
                room = int(100 * one.took_us / self.end_us)
                if room >= 7 and not style.hatch:
                    at = (one.start_us / unit + 0.004 * self.end_us / unit, top + _LANE * (depth + 0.47))
                    axes.text(*at, _short(one.name)[:room], fontsize=8, va="center", color=style.text, clip_on=True)

    def _legend(self, figure: Any) -> None:
        from matplotlib.patches import Patch

        used = {_kind(one.category) for row in self.rows for one in row.slices}
        patches = [
            Patch(facecolor=style.fill, edgecolor=GREY if style.hatch else DARK, linewidth=0.6, label=style.label,
                  hatch="/////" if style.hatch else None)
            for kind, style in _STYLES.items() if kind in used
        ]  # fmt: skip
        figure.legend(handles=patches, loc="lower right", ncols=5, fontsize=9, frameon=False, borderaxespad=0.1)

    def __repr__(self) -> str:
        return f"[Timeline: {self.alt}]" + (f"\n{self.note}" if self.note else "") if self.rows else self.note

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        if not self.rows:
            return note
        place = f"grader-timeline-{next(_number)}-{abs(hash((self.alt, id(self)))):x}"
        data = json.dumps(self._data(), separators=(",", ":")).replace("<", "\\u003c")
        style = "position:relative; max-width:960px; background:white; color:#222; padding:6px"
        call = f'{_SCRIPT.read_text(encoding="utf-8").strip()}(document.getElementById("{place}"), {data});'
        still = self.picture._repr_html_()
        return f'<div id="{place}" style="{style}">{still}</div><script>{call}</script>{note}'

    def _data(self) -> dict[str, Any]:
        names = {name: n for n, name in enumerate(dict.fromkeys(one.name for row in self.rows for one in row.slices))}
        kinds = list(_STYLES)
        return {
            "alt": self.alt,
            "title": self.title,
            "end": self.end_us,
            "names": [name[:_MOST_CHARACTERS] for name in names],
            "styles": [vars(style) for style in _STYLES.values()],
            "rows": [
                {
                    "label": row.label,
                    "depth": row.depth,
                    "slices": [
                        [round(one.start_us, 3), round(one.took_us, 3), one.depth, names[one.name],
                         kinds.index(_kind(one.category))]
                        for one in row.slices
                    ],
                }
                for row in self.rows
            ],
        }  # fmt: skip


def show_timeline(source: Any, title: str = "") -> Timeline:
    """Draw a trace of `torch.profiler`: a row for each thread of the CPU and each stream of the GPU.

    Args:
        source: a profiler that has ended, a file that `export_chrome_trace` wrote, a list of events, or a
            `recorded_trace(…)`. One without events is shown as its note.
        title: what ran.

    Raises:
        ValueError, FileNotFoundError: it is no trace.
    """
    rows, left_out = rows_of(events_of(source))
    note = source.origin if isinstance(source, RecordedTrace) else "" if rows else "Nothing ran in this trace."
    if left_out:
        note = f"{note} The {left_out:,} shortest events are left out.".strip()
    return Timeline(tuple(rows), title, note)


def _kind(category: str) -> str:
    return _KINDS.get(category, "operation")


def _short(name: str) -> str:
    """A name without namespaces, template arguments and parameters."""
    from grader.explore.kernels import KernelRun

    return name if name.startswith("aten::") else KernelRun(name, 0.0).short_name[:60]


def _time(us: float) -> str:
    return f"{us / 1e3:,.3g} ms" if us >= 1e3 else f"{us:.3g} µs"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
