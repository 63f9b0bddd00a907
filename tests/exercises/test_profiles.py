"""The exercises on profiles: realistic traces, and the notebook's pipeline as the timed one."""

import ast
import inspect
import itertools
import json
from pathlib import Path

import pytest
import torch

from grader.exercises import find
from grader.exercises.profiling.trace_facts import KINDS, trace
from grader.judge.checking.buffers import generator

NOTEBOOK = Path(__file__).resolve().parents[2] / "source" / "01_profiling" / "03_free_a_pipeline.py"


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_is_drawn_anew_and_fits_its_array(kind):
    """No two traces are equal, the longest fits easily, and nothing overlaps on one stream."""
    one, other = trace(kind), trace(kind)
    assert one != other
    room = find("trace_facts").cases[0].arrays[0].shape[0]
    assert 2 * len(json.dumps(one)) < room or len(json.dumps(one)) < 0.7 * room
    streams = {}
    for event in one:
        if event["ph"] == "X" and event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            streams.setdefault(event["args"]["stream"], []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in streams.values():
        spans.sort()
        assert all(before[1] <= after[0] + 1e-3 for before, after in itertools.pairwise(spans))


def test_traces_have_what_a_careless_reader_stumbles_on():
    """Events without a duration or category, overlapping kernels, ranges, waits and misleading names."""
    events = trace("all of it, hundreds of kernels")
    assert {event["ph"] for event in events} == {"X", "M", "s", "f", "i"}
    categories = {event.get("cat") for event in events}
    assert {None, "cuda_sync", "gpu_user_annotation", "gpu_memset", "cuda_driver"} <= categories
    assert any("kernel" in event["name"] for event in events if event.get("cat") == "cpu_op")
    starts = [event["ts"] for event in events if event["ph"] == "X"]
    assert starts != sorted(starts)


def _body(text, name):
    """A function's statements without its docstring, imports and inner functions."""
    (found,) = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == name)
    said = ast.get_docstring(found) is not None
    return [ast.dump(node) for node in found.body[said:] if not isinstance(node, ast.Import | ast.FunctionDef)]


@pytest.mark.parametrize(("shown", "timed"), [("blocking", "_blocking"), ("clean", "clean")])
def test_the_pipeline_in_the_notebook_is_the_baseline(shown, timed):
    """The code in the notebook is the baseline of the exercise."""
    baseline = inspect.getsource(find("unblock").baseline("blocking").function)
    assert _body(NOTEBOOK.read_text(encoding="utf-8"), shown) == _body(baseline, timed)


@pytest.mark.parametrize("case", find("unblock").simulator_cases, ids=lambda case: case.name)
def test_the_oracle_agrees_with_the_pipeline(case):
    """The vectorised oracle and the loop agree for every kind of row."""
    exercise = find("unblock")
    inputs = exercise.draw(case, generator("cpu"), None)
    expected = exercise.oracle({name: value.double() for name, value in inputs.items()})
    got = exercise.baseline("blocking").function(**inputs)
    torch.testing.assert_close(got.double(), expected, rtol=exercise.budget.relative, atol=exercise.budget.absolute)
