"""A torch.profiler trace, live or recorded, as a timeline inside the notebook."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from grader.explore.drawing.displays import BLUE, DARK, GREY, ORANGE, PALE, Picture, canvas, code_html, finish
from grader.results import RESULTS
from grader.words import plural

TRACES = RESULTS / "traces"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")  # GPU work; the other slices in its rows are ranges and waits
_ON_GPU = (*WORK, "gpu_user_annotation")
_LEFT_OUT = ("Trace", "cuda_sync", "overhead")  # the profiler's own events, and waits drawn across a stream
_MOST = 3_000
_NONE = "{what} is recorded yet. On a machine with a GPU, make bench ARGS=traces records it."

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Slice:
    """An event that starts `start_us` after the trace's start; `depth` is its level in the row.

    A launch and the work that it puts into a queue have the same `launch` number.
    """

    name: str
    category: str
    start_us: float
    took_us: float
    depth: int = 0
    launch: int | None = None

    @property
    def end_us(self) -> float:
        return self.start_us + self.took_us


@dataclass(frozen=True)
class TraceRow:
    """A thread of the CPU, or a stream of the GPU."""

    label: str
    gpu: bool
    slices: tuple[Slice, ...]

    @property
    def depth(self) -> int:
        """The number of levels: an event inside another is drawn below it."""
        return 1 + max((one.depth for one in self.slices), default=0)


@dataclass(frozen=True)
class RecordedTrace:
    """A trace that was recorded on a GPU; `events` is empty if there is none yet."""

    name: str
    events: tuple[Event, ...]
    origin: str

    def __repr__(self) -> str:
        return f"{plural(len(self.events), 'event')}. {self.origin}" if self.events else self.origin

    def __len__(self) -> int:
        return len(self.events)


@dataclass(frozen=True)
class RecordedOutput:
    """A command's output on a GPU machine; `text` is empty if it is not recorded yet."""

    command: str
    text: str
    origin: str

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.text}\n{self.origin}" if self.text else self.origin

    def _repr_html_(self) -> str:
        if not self.text:
            return f"<p>{escape(self.origin)}</p>"
        listing = code_html(f"$ {self.command}\n{self.text}", "font-size:12px")
        return f"{listing}<p>{escape(self.origin)}</p>"


def events_of(source: Any) -> list[Event]:
    """Return the events of a trace: from a file of `export_chrome_trace`, a stopped profiler, or a list.

    Raises:
        ValueError: the file is not a trace, or the profiler has already exported it to another file.
        FileNotFoundError: there is no such file.
    """
    if isinstance(source, RecordedTrace):
        return list(source.events)
    if hasattr(source, "export_chrome_trace"):
        return _exported(source)
    if isinstance(source, str | os.PathLike):
        try:
            source = json.loads(Path(source).read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{source} is not a trace: {error}. Export it with `export_chrome_trace`.") from None
    events = source.get("traceEvents") if isinstance(source, dict) else source
    if not isinstance(events, list):
        raise ValueError("A trace is a list of events, or has one under 'traceEvents'.")
    return [event for event in events if isinstance(event, Mapping)]


def _exported(profiler: Any) -> list[Event]:
    """A profiler exports its trace only once, so keep the events with it: a cell may run twice."""
    kept = getattr(profiler, "_events_for_a_timeline", None)
    if kept is None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            try:
                profiler.export_chrome_trace(str(path))
            except RuntimeError as error:
                said = "A profile can be exported only once, and this one was: show the file that you exported."
                raise ValueError(f"{said} ({error})") from None
            kept = profiler._events_for_a_timeline = events_of(path)
    return list(kept)


def rows_of(events: Iterable[Event]) -> tuple[list[TraceRow], int]:
    """Return rows, threads before streams, and the number of events left out. The shortest go if there are too many."""
    found = [event for event in events if event.get("ph") == "X" and event.get("cat") not in _LEFT_OUT]
    if not found:
        return [], 0
    kept = sorted(found, key=lambda event: -float(event.get("dur", 0)))[:_MOST]
    begin = min(float(event["ts"]) for event in kept)
    streams_of = {event.get("tid"): event["args"]["stream"] for event in found if "stream" in event.get("args", {})}
    groups: dict[tuple[bool, str], list[Event]] = {}
    for event in kept:
        gpu = event["cat"] in _ON_GPU
        thread = event.get("tid")
        key = str(event.get("args", {}).get("stream", streams_of.get(thread, thread)) if gpu else thread)
        groups.setdefault((gpu, key), []).append(event)
    rows = [_row(gpu, key, group, begin) for (gpu, key), group in groups.items()]
    threads = sorted((row for row in rows if not row.gpu), key=lambda row: row.slices[0].start_us)
    streams = sorted((row for row in rows if row.gpu), key=lambda row: (len(row.label), row.label))
    named = [TraceRow(f"CPU thread {n}", False, row.slices) for n, row in enumerate(threads, start=1)] + streams
    return named, len(found) - len(kept)


def _row(gpu: bool, key: str, events: list[Event], begin: float) -> TraceRow:
    """Put each event on the first free level; enclosing events come first."""
    ends: list[float] = []
    slices = []
    for event in sorted(events, key=lambda event: (float(event["ts"]), -float(event.get("dur", 0)))):
        start, took = float(event["ts"]) - begin, float(event.get("dur", 0))
        depth = next((level for level, end in enumerate(ends) if end <= start), len(ends))
        if depth == len(ends):
            ends.append(0.0)
        ends[depth] = start + took
        launch = event.get("args", {}).get("correlation")
        slices.append(Slice(str(event.get("name", "")), str(event["cat"]), start, took, depth, launch))
    return TraceRow(f"GPU stream {key}" if gpu else key, gpu, tuple(slices))


def recorded_trace(name: str, folder: Path = TRACES) -> RecordedTrace:
    """Return the latest recorded trace of this name, or one without events that says how to record it.

    Args:
        name: as in `benchmarks/traces.py`, e.g. "mean".
        folder: the folder of traces; by default that of the checkout this package runs from.
    """
    found = _latest(name, "traceEvents", folder)
    if not found:
        return RecordedTrace(name, (), _NONE.format(what=f"No trace “{name}”"))
    return RecordedTrace(name, tuple(found["traceEvents"]), _origin(found))


def recorded_output(name: str, folder: Path = TRACES) -> RecordedOutput:
    """Return a profiler's latest recorded output; without a record it says how to make one.

    Args:
        name: as in `benchmarks/traces.py`: "nsys" or "ncu".
        folder: as for `recorded_trace`.
    """
    found = _latest(name, "text", folder)
    if not found:
        return RecordedOutput("", "", _NONE.format(what=f"No output of {name}"))
    return RecordedOutput(found["command"], found["text"], _origin(found))


def _latest(name: str, needed: str, folder: Path) -> dict[str, Any]:
    """Return the record with the latest date, skipping unreadable records."""
    best: dict[str, Any] = {}
    for path in sorted(folder.glob(f"*-{name}.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["name"] == name and data[needed] and data["gpu"] and data["date"] > best.get("date", ""):
                best = data
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return best


def _origin(found: Mapping[str, Any]) -> str:
    return f"Recorded on one {found['gpu']} on {found['date']}. Not measured on this machine now."


_SCRIPT = Path(__file__).with_name("trace_timeline.js")
_LANE, _GAP = 0.24, 0.12  # inches
_MOST_CHARACTERS = 160  # per name; torch's kernels have longer ones
_HIDDEN = 2e-3  # of the width; shorter events are drawn this wide
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
    """Rows over time: a canvas with zoom in JupyterLab, a picture without scripts, and text in a terminal."""

    rows: tuple[TraceRow, ...]
    title: str = ""
    note: str = ""

    @property
    def end_us(self) -> float:
        return max((one.end_us for row in self.rows for one in row.slices), default=0.0)

    @cached_property
    def arrows(self) -> list[tuple[tuple[int, Slice], tuple[int, Slice]]]:
        """From each launch to its work: the number of the row and the slice, of both."""
        placed = [(n, one) for n, row in enumerate(self.rows) for one in row.slices if one.launch is not None]
        launches = {one.launch: (n, one) for n, one in placed if _kind(one.category) == "runtime"}
        return [
            (launches[one.launch], (n, one)) for n, one in placed if one.category in WORK and one.launch in launches
        ]

    @property
    def alt(self) -> str:
        """The timeline in words."""
        name = f"“{self.title}”: a" if self.title else "A"
        said = [f"{name} timeline of {_time(self.end_us)}.", *(self._about(row) for row in self.rows)]
        if self.arrows:
            latest = max(work.start_us - launch.start_us for (_, launch), (_, work) in self.arrows)
            said.append(f"Arrows lead from launches to their work, which starts up to {_time(latest)} later.")
        return " ".join(said)

    def _about(self, row: TraceRow) -> str:
        longest = max(row.slices, key=lambda one: (_kind(one.category) != "range", one.took_us))
        most = f"the longest is {_short(longest.name)}, {_time(longest.took_us)}"
        if not row.gpu:
            return f"{row.label}: {_counted(len(row.slices), 'event', 'events')}, {most}."
        work = sorted((one.start_us, one.end_us) for one in row.slices if one.category in WORK)
        kernels = sum(one.category == "kernel" for one in row.slices)
        busy, end = 0.0, 0.0
        for start, stop in work:
            busy, end = busy + max(0.0, stop - max(start, end)), max(end, stop)
        share = busy / self.end_us if self.end_us else 0.0
        others = (
            f" and {_counted(len(work) - kernels, 'copy or fill', 'copies or fills')}" if len(work) > kernels else ""
        )
        ran = f"{_counted(kernels, 'kernel', 'kernels')}{others}"
        return f"{row.label}: {ran}, busy for {100 * share:.0f} % of the time shown, {most}."

    @cached_property
    def picture(self) -> Picture:
        """The whole trace as a picture."""
        depth = sum(row.depth for row in self.rows)
        tall = _LANE * depth + _GAP * len(self.rows) + 0.95
        figure, axes = canvas(10, tall)
        axes.set_position((0.13, 0.62 / tall, 0.85, 1 - 0.95 / tall))
        axes.set_axis_on()
        for side in ("top", "left", "right"):
            axes.spines[side].set_visible(False)
        unit, words = (1e3, "ms") if self.end_us >= 1e3 else (1.0, "µs")
        top, ticks, tops = 0.0, [], []
        for row in self.rows:
            tops.append(top)
            for kind, style in _STYLES.items():
                self._bars(axes, row, kind, style, top, unit)
            ticks.append((top + _LANE / 2, row.label))
            top += _LANE * row.depth + _GAP
        self._draw_arrows(axes, tops, unit)
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
                    name = _short(one.name)
                    name = name if len(name) <= room else f"{name[: room - 1]}…"
                    axes.text(*at, name, fontsize=8, va="center", color=style.text, clip_on=True)

    def _draw_arrows(self, axes: Any, tops: list[float], unit: float) -> None:
        for (above, launch), (below, work) in self.arrows:
            start = (launch.start_us / unit, tops[above] + _LANE * (launch.depth + 0.9))
            end = (work.start_us / unit, tops[below] + _LANE * work.depth)
            style = {
                "arrowstyle": "-|>,head_width=0.12,head_length=0.25",
                "color": DARK,
                "linewidth": 0.6,
                "alpha": 0.8,
            }
            axes.annotate("", end, start, arrowprops=style | {"shrinkA": 0, "shrinkB": 0})

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
            "arrows": [
                [above, launch.depth, round(launch.start_us, 3), below, work.depth, round(work.start_us, 3)]
                for (above, launch), (below, work) in self.arrows
            ],
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
    """Draw a trace of `torch.profiler`: a row per CPU thread and per GPU stream, an arrow from each launch to its work.

    Args:
        source: a stopped profiler, a file written by `export_chrome_trace`, a list of events, or a
            `recorded_trace(…)`. If a trace has no events, only its note is shown.
        title: the name of what ran.

    Raises:
        ValueError, FileNotFoundError: `source` is not a trace.
    """
    rows, left_out = rows_of(events_of(source))
    note = source.origin if isinstance(source, RecordedTrace) else "" if rows else "Nothing ran in this trace."
    if left_out:
        note = f"{note} Left out: the {plural(left_out, 'shortest event')}.".strip()
    return Timeline(tuple(rows), title, note)


def _kind(category: str) -> str:
    return _KINDS.get(category, "operation")


def _short(name: str) -> str:
    """A name without namespaces, template arguments or parameters."""
    from grader.explore.profiling.call_timing import KernelRun

    return name if name.startswith("aten::") else KernelRun(name, 0.0).short_name[:60]


def _time(us: float) -> str:
    return f"{us / 1e3:,.3g} ms" if us >= 1e3 else f"{us:.3g} µs"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
