"""The records for the notebook on profiles are what the notebook shows and prints."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.profiler import ProfilerActivity

from benchmarks import traces
from benchmarks.traces import COMMANDS, SCRIPT, slim, write
from grader.explore import recorded_output, recorded_trace, show_timeline

NOTEBOOK = Path(__file__).resolve().parents[2] / "source" / "01_profiling" / "03_free_a_pipeline.py"


@pytest.fixture
def recorder():
    machine = SimpleNamespace(gpu="NVIDIA Test", driver="1", torch="2")
    return SimpleNamespace(machine=machine, date="2026-01-02")


def _event(**fields):
    return {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 812, "tid": 812, "ts": 5_000.5, "dur": 2.0} | fields


EVENTS = [
    _event(args={"External id": 3}),
    {"ph": "M", "name": "process_name", "pid": 812, "ts": 1.0},
    _event(cat="Trace", name="PyTorch Profiler (0)", ts=1.0),
    _event(cat="kernel", name="k" * 999, pid=0, tid=7, ts=5_003.0, dur=1.5, args={"stream": 7, "grid": [1, 2, 3]}),
]


def test_the_script_and_the_commands_are_the_notebooks():
    """A learner who runs the printed commands runs the recorded ones."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert f'script = """{SCRIPT}"""' in text
    for command in sum(COMMANDS.values(), ()):
        assert f"# {command}\n" in text


def test_a_profile_holds_one_call_of_each_way_after_a_warm_up(monkeypatch):
    """The profiler's first step is discarded, and its own ranges are left out."""
    monkeypatch.setattr(traces, "_ACTIVITIES", [ProfilerActivity.CPU])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    calls = []
    events = traces._profiled({"one": lambda: calls.append(torch.ones(3) + 1), "other": lambda: torch.ones(3) * 2})
    names = [event.get("name") for event in events if event.get("cat") in ("cpu_op", "user_annotation")]
    assert len(calls) == 5  # three to warm up, one to warm up the profiler, one recorded
    assert [names.count(name) for name in ("one", "other", "aten::add", "aten::mul")] == [1, 1, 1, 1]
    assert not any(str(name).startswith("ProfilerStep") for name in names)


def test_a_slim_trace_keeps_the_timelines_content():
    """Times start at the first event, and no process ids are left."""
    operation, kernel = slim(EVENTS)
    assert (operation["ts"], kernel["ts"], kernel["dur"]) == (0.0, 2.5, 1.5)
    assert (kernel["pid"], kernel["args"]) == (0, {"stream": 7})
    assert len(kernel["name"]) < 200
    assert "812" not in str([operation, kernel])


def test_a_written_record_is_found_and_names_its_gpu(recorder, tmp_path):
    """A trace and an output are read back, the latest first, with their origin."""
    write(recorder, "mean", tmp_path, traceEvents=slim(EVENTS[:1]))
    recorder.date, recorder.machine.gpu = "2026-03-04", "NVIDIA Other"
    write(recorder, "mean", tmp_path, traceEvents=slim(EVENTS))
    write(recorder, "ncu", tmp_path, command="ncu …", text="DRAM Throughput 91")
    found = recorded_trace("mean", tmp_path)
    assert len(found) == 2
    assert "NVIDIA Other on 2026-03-04" in repr(show_timeline(found))
    assert "DRAM Throughput 91" in recorded_output("ncu", tmp_path)._repr_html_()
    assert "NVIDIA Other" in repr(recorded_output("ncu", tmp_path))
