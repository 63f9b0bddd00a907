"""Traces and profiler output for the notebooks 02_read_a_profile and 03_free_a_pipeline.

Files go to `results/traces`, and rows are named `traces/…`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from benchmarks.kernels import load
from benchmarks.rows import Recorder
from grader.exercises import find
from grader.explore.profiling.trace_timeline import TRACES, WORK, events_of

# The same text as in the notebook.
SCRIPT = """import torch
x = torch.randn(10_000, 10_000, device="cuda")
ways = {"by_function": torch.mean, "by_sum": lambda x: torch.sum(x) / x.numel()}
for name, mean in ways.items():
    mean(x)  # warms up
    with torch.cuda.nvtx.range(name):
        mean(x)
torch.cuda.synchronize()
"""
COMMANDS = {
    "nsys": (
        "nsys profile --trace=cuda,nvtx --force-overwrite=true --output=mean python mean_two_ways.py",
        "nsys stats --force-export=true --report cuda_gpu_kern_sum mean.nsys-rep",
    ),
    "ncu": ('ncu --nvtx --nvtx-include "by_sum/" --section SpeedOfLight python mean_two_ways.py',),
}
_KEPT = ("cpu_op", "cuda_runtime", "cuda_driver", "user_annotation", "gpu_user_annotation", *WORK)
_WAIT = "cudaStreamSynchronize"
_MOST_CHARACTERS = 160
_LIMIT_S = 300.0
_ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
_SMALL, _LARGE = (8, 65_536), (64, 1 << 20)  # sensors × readings: limited by launches, and by memory


def traces(recorder: Recorder) -> None:
    """Record what the notebook shows on machines without a GPU, or without Nsight."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    _means(recorder)
    _pipelines(recorder)
    for name in COMMANDS:
        _nsight(recorder, name)


def _means(recorder: Recorder) -> None:
    x = torch.randn(10_000, 10_000, device="cuda")
    ways: dict[str, Callable[[], Any]] = {
        "by_function": lambda: torch.mean(x),
        "by_method": lambda: x.mean(),
        "by_sum": lambda: torch.sum(x) / x.numel(),
    }
    write(recorder, "mean", traceEvents=slim(_profiled(ways)))
    for name, way in ways.items():
        found = [event for event in _profiled({name: way}) if event.get("cat") == "kernel"]
        recorder.add("traces/mean", name, "kernels", "1", len(found))
        recorder.add("traces/mean", name, "gpu_us", "µs", sum(event["dur"] for event in found))


def _pipelines(recorder: Recorder) -> None:
    """Record both pipelines at a small and a large size. Only the small one's timelines are kept."""
    with tempfile.TemporaryDirectory() as folder:
        unblock, facts = (load(find(name), Path(folder)) for name in ("unblock", "trace_facts"))
    ways: dict[str, tuple[str, Callable[..., Any]]] = {
        "blocking": ("the pipeline", find("unblock").baseline("blocking").function),
        "unblocked": ("without waits", unblock),
    }
    for size in (_SMALL, _LARGE):
        x = torch.randn(size, device="cuda")
        gain = torch.rand(size[0], device="cuda") + 0.5
        for name, (title, way) in ways.items():
            events = _profiled({name: partial(way, x, gain)})
            if size == _SMALL:
                write(recorder, name, traceEvents=slim(events))
            case = title if size == _SMALL else f"{title}, {size[0]} × {size[1]:,}"
            _add_facts(recorder, case, events, facts)


def _add_facts(recorder: Recorder, case: str, events: list[dict[str, Any]], facts: Any) -> None:
    work = [event for event in events if event.get("ph") == "X" and event.get("cat") in WORK]
    answers: Any = facts(events)
    span_us = max(event["ts"] + event["dur"] for event in work) - min(event["ts"] for event in work)
    recorder.add("traces/pipeline", case, "kernels", "1", answers[0])
    recorder.add("traces/pipeline", case, "waits", "1", sum(event["name"] == _WAIT for event in events))
    recorder.add("traces/pipeline", case, "span_us", "µs", span_us)
    recorder.add("traces/pipeline", case, "busy_percent", "%", 100 * answers[1])


def _profiled(ways: Mapping[str, Callable[[], Any]]) -> list[dict[str, Any]]:
    """Return the events of one call of each, under its name.

    Each way is warmed up, and so is the profiler: without a warm-up step, its own start fills most of a short trace.
    """
    for way in (*ways.values(), *ways.values(), *ways.values()):
        way()
    torch.cuda.synchronize()
    plan = schedule(wait=0, warmup=1, active=1, repeat=1)
    with profile(activities=_ACTIVITIES, schedule=plan, acc_events=True) as session:
        for _ in range(2):
            for name, way in ways.items():
                with record_function(name):
                    way()
            torch.cuda.synchronize()
            session.step()
    return [dict(event) for event in events_of(session) if not str(event.get("name")).startswith("ProfilerStep#")]


def slim(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the events for a timeline, from 0 µs on, without metadata and process ids, and with shortened names."""
    kept = [event for event in events if event.get("ph") == "X" and event.get("cat") in _KEPT]
    begin = min(float(event["ts"]) for event in kept)
    threads = {tid: n for n, tid in enumerate(dict.fromkeys(str(event["tid"]) for event in kept), start=1)}
    return [
        {
            "ph": "X",
            "cat": event["cat"],
            "name": event["name"][:_MOST_CHARACTERS],
            "pid": 0 if event["cat"] in WORK or event["cat"] == "gpu_user_annotation" else 1,
            "tid": threads[str(event["tid"])],
            "ts": round(float(event["ts"]) - begin, 3),
            "dur": event["dur"],
            "args": {key: event["args"][key] for key in ("stream", "correlation") if key in event.get("args", {})},
        }
        for event in kept
    ]


def _nsight(recorder: Recorder, name: str) -> None:
    """Run the notebook's commands and record the last one's output. A tool that cannot run keeps its old record."""
    command = COMMANDS[name][-1]
    if shutil.which(name) is None:
        print(f"{name} is not installed: nothing is recorded.", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mean_two_ways.py").write_text(SCRIPT, encoding="utf-8")
        python = Path(folder) / "bin" / "python"  # the `python` on the path may not be the one with torch
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
        for command in COMMANDS[name]:
            ran = subprocess.run(
                ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S,
                env={**os.environ, "PATH": path}, check=False,
            )  # fmt: skip
            if ran.returncode:
                said = f"{ran.stdout[-2000:]}{ran.stderr[-2000:]}".replace(folder, ".").strip()
                print(f"{name}: nothing is recorded, because this machine does not allow it:\n{said}", flush=True)
                return
    write(recorder, name, command=command, text=ran.stdout.replace(folder, ".").strip())


def write(recorder: Recorder, name: str, folder: Path = TRACES, **record: Any) -> Path:
    """Write one record with its GPU and date, as `recorded_trace` and `recorded_output` read it."""
    machine = recorder.machine
    data = {"name": name, "gpu": machine.gpu, "driver": machine.driver, "torch": machine.torch, "date": recorder.date}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{machine.gpu.lower().replace(' ', '-')}-{name}.json"
    text = json.dumps(data | record, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text.replace('{"ph"', '\n{"ph"') + "\n", encoding="utf-8")
    print("written:", path, f"({path.stat().st_size:,} bytes)", flush=True)
    return path
