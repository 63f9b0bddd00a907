"""A profiler's trace as rows to draw: threads of the CPU above, streams of the GPU below. And recorded traces."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from grader.results import RESULTS

__all__ = [
    "TRACES",
    "WORK",
    "RecordedOutput",
    "RecordedTrace",
    "Slice",
    "TraceRow",
    "events_of",
    "recorded_output",
    "recorded_trace",
    "rows_of",
]

TRACES = RESULTS / "traces"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")  # what a GPU does; the rest of its rows are ranges and waits
_ON_GPU = (*WORK, "gpu_user_annotation")
_LEFT_OUT = ("Trace", "cuda_sync", "overhead")  # of the profiler itself, and waits drawn across a stream
_MOST = 3_000
_NONE = "{what} is recorded yet. On a machine with a GPU, make bench ARGS=traces records it."

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Slice:
    """Something that ran from `start_us` on, counted from the trace's start; `depth` is its lane in the row."""

    name: str
    category: str
    start_us: float
    took_us: float
    depth: int = 0

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
        """How many lanes it needs: what runs inside of something else lies below it."""
        return 1 + max((one.depth for one in self.slices), default=0)


@dataclass(frozen=True)
class RecordedTrace:
    """A trace that was recorded on a GPU; `events` is empty where there is none yet."""

    name: str
    events: tuple[Event, ...]
    origin: str

    def __repr__(self) -> str:
        return f"{len(self.events)} events. {self.origin}" if self.events else self.origin

    def __len__(self) -> int:
        return len(self.events)


@dataclass(frozen=True)
class RecordedOutput:
    """What a command printed on a GPU machine; `text` is empty where that was not recorded yet."""

    command: str
    text: str
    origin: str

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.text}\n{self.origin}" if self.text else self.origin

    def _repr_html_(self) -> str:
        if not self.text:
            return f"<p>{escape(self.origin)}</p>"
        style = "font-family:var(--jp-code-font-family, monospace); font-size:12px; line-height:1.35; overflow-x:auto"
        return f"<pre style='{style}'>$ {escape(self.command)}\n{escape(self.text)}</pre><p>{escape(self.origin)}</p>"


def events_of(source: Any) -> list[Event]:
    """The events of a trace, from a file (exported by `export_chrome_trace`), a profiler that has ended, or as a list.

    Raises:
        ValueError: the file is no trace, or the profiler has exported its own to another file already.
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
            raise ValueError(f"{source} holds no trace: {error}. Export it with `export_chrome_trace`.") from None
    events = source.get("traceEvents") if isinstance(source, dict) else source
    if not isinstance(events, list):
        raise ValueError("A trace is a list of events, or has one under 'traceEvents'.")
    return [event for event in events if isinstance(event, Mapping)]


def _exported(profiler: Any) -> list[Event]:
    """A profiler exports its trace once only, so it is kept with it: a cell may be run twice."""
    kept = getattr(profiler, "_events_for_a_timeline", None)
    if kept is None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            try:
                profiler.export_chrome_trace(str(path))
            except RuntimeError as error:
                said = "This profile was exported before, and it cannot be twice: show the file that you exported."
                raise ValueError(f"{said} ({error})") from None
            kept = profiler._events_for_a_timeline = events_of(path)
    return list(kept)


def rows_of(events: Iterable[Event]) -> tuple[list[TraceRow], int]:
    """Threads first, then streams; and how many slices were left out as there were too many: the shortest."""
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
    """Each event in the first lane that is free by then; what holds others comes before them."""
    lanes: list[float] = []
    slices = []
    for event in sorted(events, key=lambda event: (float(event["ts"]), -float(event.get("dur", 0)))):
        start, took = float(event["ts"]) - begin, float(event.get("dur", 0))
        depth = next((lane for lane, end in enumerate(lanes) if end <= start), len(lanes))
        if depth == len(lanes):
            lanes.append(0.0)
        lanes[depth] = start + took
        slices.append(Slice(str(event.get("name", "")), str(event["cat"]), start, took, depth))
    return TraceRow(f"GPU stream {key}" if gpu else key, gpu, tuple(slices))


def recorded_trace(name: str, folder: Path = TRACES) -> RecordedTrace:
    """The trace of this name that was recorded last, with its GPU, or one without events that says how to record it.

    Args:
        name: as in `benchmarks/traces.py`, e.g. "mean".
        folder: where the traces lie; by default those of the checkout that this package runs from.
    """
    found = _latest(name, "traceEvents", folder)
    if not found:
        return RecordedTrace(name, (), _NONE.format(what=f"No trace “{name}”"))
    return RecordedTrace(name, tuple(found["traceEvents"]), _origin(found))


def recorded_output(name: str, folder: Path = TRACES) -> RecordedOutput:
    """What a profiler printed, recorded last on a GPU machine; without a record it says how to make one.

    Args:
        name: as in `benchmarks/traces.py`: "nsys" or "ncu".
        folder: as for `recorded_trace`.
    """
    found = _latest(name, "text", folder)
    if not found:
        return RecordedOutput("", "", _NONE.format(what=f"No output of {name}"))
    return RecordedOutput(found["command"], found["text"], _origin(found))


def _latest(name: str, needed: str, folder: Path) -> dict[str, Any]:
    """The record with the latest date; one that cannot be read is passed over."""
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
