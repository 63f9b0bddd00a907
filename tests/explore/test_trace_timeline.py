"""A trace becomes rows, a picture with alt text, and a canvas with zoom."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.exercises.profiling.trace_facts import KINDS, trace
from grader.explore import recorded_output, recorded_trace, show_timeline
from grader.explore.profiling.trace_timeline import events_of, rows_of


def _event(name: str, category: str, start: float, took: float, stream: int | None = None) -> dict[str, Any]:
    place = {"pid": 9, "tid": 9, "args": {}} if stream is None else {"pid": 0, "tid": 1, "args": {"stream": stream}}
    return {"ph": "X", "cat": category, "name": name, "ts": 1e9 + start, "dur": took, **place}


EVENTS = [
    _event("late</script>", "kernel", 70.0, 30.0, 20),
    _event("early", "kernel", 10.0, 40.0, 7),
    _event("copy", "gpu_memcpy", 50.0, 10.0, 7),
    _event("aten::add", "cpu_op", 1.0, 8.0),
    _event("step", "user_annotation", 0.0, 90.0),
    _event("cudaLaunchKernel", "cuda_runtime", 3.0, 4.0),
    {"ph": "M", "name": "process_name", "pid": 9, "ts": 0.0, "args": {"name": "python"}},
    {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "x",
        "ts": 1e9 - 50,
        "dur": 900.0,
    },
]


def test_threads_come_before_streams_and_calls_lie_below_their_callers() -> None:
    """There is one row per thread, then one per stream; the profiler's own events are left out."""
    rows, left_out = rows_of(EVENTS)
    assert [row.label for row in rows] == ["CPU thread 1", "GPU stream 7", "GPU stream 20"]
    assert left_out == 0
    assert [(one.name, one.depth) for one in rows[0].slices] == [("step", 0), ("aten::add", 1), ("cudaLaunchKernel", 2)]
    assert [(one.start_us, one.depth) for one in rows[1].slices] == [(10.0, 0), (50.0, 0)]


def test_a_range_on_the_gpu_lies_on_the_stream_of_its_kernels() -> None:
    """A range names no stream; a separate row would show a stream that does not exist."""
    of_gpu = {"ph": "X", "cat": "gpu_user_annotation", "name": "range", "pid": 0, "tid": 1, "ts": 1e9, "dur": 60.0}
    rows, _ = rows_of([_event("kernel", "kernel", 10.0, 40.0, 7), of_gpu])
    assert [row.label for row in rows] == ["GPU stream 7"]
    assert [one.name for one in rows[0].slices] == ["range", "kernel"]


def test_too_many_events_lose_the_shortest_and_say_so() -> None:
    """The longest events stay, and the note counts the others."""
    many = [_event("short", "cpu_op", float(n), 0.5) for n in range(5_000)] + [_event("long", "cpu_op", 0.0, 9_000.0)]
    timeline = show_timeline(many)
    assert timeline.rows[0].slices[0].name == "long"
    assert "Left out: the 2001 shortest events." in timeline.note


def test_words_say_what_the_picture_shows() -> None:
    """Alt text and terminal output name the rows, count the kernels, and give the GPU's busy share."""
    words = repr(show_timeline(EVENTS, "a step"))
    assert words.startswith("[Timeline: “a step”: a timeline of 100 µs.")
    assert "GPU stream 7: 1 kernel and 1 copy or fill, busy for 50 % of the time shown," in words
    assert "the longest is early, 40 µs." in words
    assert "CPU thread 1: 3 events, the longest is aten::add, 8 µs." in words


def _launched(correlation: int, start: float, work: dict[str, Any]) -> list[dict[str, Any]]:
    launch = _event("cudaLaunchKernel", "cuda_runtime", start, 4.0)
    return [{**one, "args": {**one["args"], "correlation": correlation}} for one in (launch, work)]


def test_arrows_lead_from_launches_to_their_work() -> None:
    """The correlation decides, not the order; a call without work, such as a wait, has no arrow."""
    events = [
        *_launched(2, 10.0, _event("second", "kernel", 50.0, 5.0, 7)),
        *_launched(1, 2.0, _event("first", "gpu_memcpy", 30.0, 5.0, 7)),
        _launched(3, 20.0, EVENTS[0])[0],
    ]
    timeline = show_timeline(events)
    assert [(launch.start_us, work.name) for (_, launch), (_, work) in timeline.arrows] == [
        (0.0, "first"),
        (8.0, "second"),
    ]
    assert "Arrows lead from launches to their work, which starts up to 40 µs later." in timeline.alt
    assert timeline._data()["arrows"] == [[0, 0, 0.0, 1, 0, 28.0], [0, 0, 8.0, 1, 0, 48.0]]
    assert "Arrows" not in show_timeline(EVENTS).alt


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.images: list[dict[str, str | None]] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.images += [dict(attrs)] if tag == "img" else []
        self.scripts += tag == "script"


def test_without_scripts_there_is_a_picture_and_nothing_comes_from_elsewhere() -> None:
    """The page has one image with the alt text, one script that no event's name can close, and no URL."""
    timeline = show_timeline(EVENTS, "a step")
    page = timeline._repr_html_()
    tags = _Tags()
    tags.feed(page)
    (image,) = tags.images
    assert image["alt"] == timeline.alt
    assert tags.scripts == 1
    assert page.count("</script>") == 1
    script = page.partition("<script>")[2].partition("</script>")[0]
    assert not re.search(r"https?://|fetch\(|import\(|innerHTML", script)


def test_two_timelines_on_a_page_have_places_of_their_own() -> None:
    """If a timeline is shown twice, each script finds its own element."""
    timeline = show_timeline(EVENTS)
    one, two = (re.search(r'id="([^"]+)"', timeline._repr_html_()) for _ in range(2))
    assert one is not None
    assert two is not None
    assert one[1] != two[1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_trace_of_the_exercise_can_be_drawn(kind: str) -> None:
    """The timeline can show the traces that `check` generates."""
    assert show_timeline(trace(kind), kind).picture.alt.endswith(".")


def test_a_profile_a_file_and_a_list_are_all_traces(tmp_path: Path) -> None:
    """A profile, a file and a list can be shown; anything else gets a message that says what to do."""

    class Profile:
        def export_chrome_trace(self, path: str) -> None:
            Path(path).write_text(json.dumps({"traceEvents": EVENTS}))

    Profile().export_chrome_trace(str(tmp_path / "a.json"))
    assert events_of(Profile()) == events_of(str(tmp_path / "a.json")) == events_of(EVENTS) == EVENTS
    (tmp_path / "b.json").write_text("no trace")
    with pytest.raises(ValueError, match="export_chrome_trace"):
        show_timeline(tmp_path / "b.json")
    with pytest.raises(ValueError, match="list of events"):
        show_timeline({"events": []})


def test_a_profile_is_shown_twice_though_it_exports_once(tmp_path: Path) -> None:
    """A cell may run again; a profile that was exported to a file gets a message that says what to do."""
    from torch.profiler import ProfilerActivity, profile

    def profiled() -> Any:
        with profile(activities=[ProfilerActivity.CPU], acc_events=True) as session:
            torch.ones(3).sum()
        return session

    session = profiled()
    assert repr(show_timeline(session)) == repr(show_timeline(session))
    session = profiled()
    session.export_chrome_trace(str(tmp_path / "a.json"))
    with pytest.raises(ValueError, match="the file that you exported"):
        show_timeline(session)


def test_what_is_not_recorded_is_said(tmp_path: Path) -> None:
    """Without a record a sentence says so; an unreadable file is not a record."""
    (tmp_path / "gpu-mean.json").write_text("{")
    (tmp_path / "gpu-ncu.json").write_text('{"name": "ncu", "date": "2026-01-01"}')
    for shown in (show_timeline(recorded_trace("mean", tmp_path)), recorded_output("ncu", tmp_path)):
        assert "is recorded yet. On a machine with a GPU" in repr(shown)
        assert "is recorded yet" in shown._repr_html_()
    assert "Nothing ran" in repr(show_timeline([]))


@pytest.mark.browser
def test_in_a_browser_the_canvas_takes_the_pictures_place(tmp_path: Path) -> None:
    """The script runs without an error, hides the picture, and responds to the zoom keys."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("There is no Chromium here.")
    asks = """<script>
    const canvas = document.querySelector("canvas"), before = canvas.toDataURL();
    canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
    const zoomed = canvas.toDataURL() !== before;
    canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "0"}));
    const still = getComputedStyle(document.querySelector("img")).display;
    document.title = [still, zoomed, canvas.toDataURL() === before, canvas.getAttribute("aria-label").length > 40];
    </script>"""
    page = tmp_path / "page.html"
    events = [*EVENTS, *_launched(1, 12.0, _event("launched", "kernel", 95.0, 5.0, 7))]
    page.write_text(f"<html><body>{show_timeline(events)._repr_html_()}{asks}</body></html>", encoding="utf-8")
    run = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    shown = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert "<title>none,true,true,true</title>" in shown
