"""Counters by source line: what is read from a report, which of the learner's lines are named, and how."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from grader import hardware
from grader.bottleneck import counters
from grader.bottleneck.counters import Counted, measured
from grader.bottleneck.evidence import Evidence, Run
from grader.bottleneck.line_counters import EXECUTED, GLOBAL, IDEAL, SHARED, STALL, by_line
from grader.exercises import find
from grader.explore.profiling import counted_call, report_lines
from tests.bottleneck.test_counters import table
from tests.slow.corpus import corpus

TRANSPOSE, ADD = find("transpose"), find("vector_add")
CASE = TRANSPOSE.timed_cases[-1]
_LONG, _DRAIN = f"{STALL}long_scoreboard", f"{STALL}drain"
_SOURCE = "import triton\n\nx = tl.load(x_ptr + i * `stride`)\ntl.store(out_ptr + i, x)\n"
# A stand-in for NVIDIA's module with the functions that the reader uses, for reports in JSON.
_MODULE = """
import json
import pathlib

class Metric:
    def __init__(self, values): self.values = values
    def num_instances(self): return len(self.values) if isinstance(self.values, dict) else 0
    def as_double(self, *at): return float(list(self.values.values())[at[0]] if at else self.values)
    def as_uint64(self, at): return int(list(self.values)[at])
    def correlation_ids(self): return self if isinstance(self.values, dict) else None

class Place:
    def __init__(self, file, number): self.file, self.number = file, number
    def file_name(self): return self.file
    def line(self): return self.number

class Action:
    def __init__(self, action): self.metrics, self.places = action["metrics"], action["places"]
    def metric_names(self): return tuple(self.metrics)
    def metric_by_name(self, name): return Metric(self.metrics[name]) if name in self.metrics else None
    def source_info(self, address): return Place(*self.places[str(address)]) if str(address) in self.places else None

class Range:
    def __init__(self, actions): self.actions = actions
    def num_actions(self): return len(self.actions)
    def action_by_idx(self, at): return Action(self.actions[at])

class Report:
    def __init__(self, ranges): self.ranges = ranges
    def num_ranges(self): return len(self.ranges)
    def range_by_idx(self, at): return Range(self.ranges[at])

def load_report(path): return Report(json.loads(pathlib.Path(path).read_text()))
"""
# A load of 32 sectors, a store of 4, and one that a library's file does; a later call of the kernel is shorter.
_ACTION = {
    "metrics": {
        counters.TIME: 900,
        EXECUTED: {"16": 100, "32": 100, "48": 100, "64": 100},
        GLOBAL: {"16": 3200, "32": 400, "48": 400},
        IDEAL.format(GLOBAL): {"16": 400, "32": 400, "48": 400},
        _LONG: {"16": 0, "32": 60, "48": 20},
        f"{STALL}selected": {"16": 900},
        f"{_LONG}_not_issued": {"16": 900},
        f"{STALL}of_no_known_reason": {"64": 20},
        "launch__registers_per_thread": 16,
    },
    "places": {"16": ["/tmp/a/submission.py", 3], "32": ["cell", 4], "48": ["/lib/standard.py", 1]},
}  # fmt: skip
_SHORTER = {"metrics": {counters.TIME: 100, GLOBAL: {"16": 1e9}}, "places": {}}


def report_of(folder: Path, *actions: Mapping[str, Any]) -> Any:
    """The stand-in's report of these launches."""
    module: dict[str, Any] = {}
    exec(_MODULE, module)
    path = folder / "report"
    path.write_text(json.dumps([[], list(actions)]))
    return module["load_report"](path)


def read_of(folder: Path, *actions: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON that the program prints about these launches."""
    read: dict[str, Any] = json.loads(json.dumps(report_lines.read(report_lines.longest(report_of(folder, *actions)))))
    return read


def test_values_by_instruction_are_added_up_by_the_learners_lines(tmp_path: Path) -> None:
    """The longest kernel is read. The totals include the lines of other files."""
    read = read_of(tmp_path, _SHORTER, _ACTION, _SHORTER)
    assert read["totals"][GLOBAL] == 4000
    assert read["totals"][_LONG] == 80
    assert set(read["lines"]) == {"3", "4"}
    assert read["lines"]["3"][GLOBAL] == 3200
    assert read["lines"]["3"][f"{EXECUTED} of {GLOBAL}"] == 100
    assert SHARED not in read["totals"]
    assert not any(name.startswith("launch__") for name in read["totals"])


def test_the_lines_that_matter_are_named_with_their_share(tmp_path: Path) -> None:
    """Each sentence has its metric. Samples of issuing warps and repeated counts are not waiting."""
    sectors, waits = by_line(read_of(tmp_path, _ACTION), _SOURCE)
    assert sectors == (
        "Line 3 (`x = tl.load(x_ptr + i * 'stride')`): a warp's access to global memory touches 32.0 sectors on "
        f"average where 4.0 would do; the line has 80% of all sectors (`{GLOBAL}`)."
    )
    assert waits == (
        "Line 4 (`tl.store(out_ptr + i, x)`): warps wait here in 60% of all stall samples, most often for values from "
        f"global memory or L2 (`{_LONG}`)."
    )


def test_bank_conflicts_are_turns_of_a_line() -> None:
    """A reason without words has its metric's name only, and long lines are cut."""
    values = {SHARED: 800.0, IDEAL.format(SHARED): 100.0, f"{EXECUTED} of {SHARED}": 100.0, _DRAIN: 5.0}
    turns, waits = by_line({"totals": values, "lines": {"1": values}}, f"y = tile[{'column, ' * 20}]")
    assert "takes 8.0 turns on average where 1.0 would do; the line has 100% of all turns" in turns
    assert turns.startswith("Line 1 (`y = tile[column,")
    assert "…`)" in turns
    assert waits.endswith(f"100% of all stall samples (`{_DRAIN}`).")
    assert by_line({"totals": values, "lines": {"1": values}}, "}") == ()  # a kernel waits there for its stores


@pytest.mark.parametrize(
    ("lines", "excess"),
    [({}, 0), ({"3": 1000.0}, 0), ({"3": 1000.0}, 90), ({"2": 1000.0}, 900), ({"99": 1000.0}, 900)],
    ids=["no line information", "nothing wasted", "little wasted", "an empty line", "a line beyond the text"],
)
def test_nothing_is_said_of_lines_that_do_not_matter_or_are_not_the_learners(
    lines: Mapping[str, float], excess: int
) -> None:
    """A wrong line would be worse than none."""
    values = {GLOBAL: 1000.0, IDEAL.format(GLOBAL): 1000.0 - excess, f"{EXECUTED} of {GLOBAL}": 100.0}
    assert by_line({"totals": values, "lines": dict.fromkeys(lines, values)}, _SOURCE) == ()


def installed(folder: Path, module: str) -> Path:
    """An `ncu` that exports and imports a report, and the folder of its Python module."""
    report, printed = folder / "recorded.json", folder / "table.txt"
    report.write_text(json.dumps([[_ACTION]]))
    printed.write_text(table({"Kernel Name": "kernel", counters.TIME: "900"}))
    program = folder / "ncu"
    program.write_text(f'#!/bin/sh\n[ "$1" = --export ] && cp {report} "$2" || cat {printed}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    modules = folder / "extras" / "python"
    modules.mkdir(parents=True)
    (modules / "ncu_report.py").write_text(module)
    return program


@pytest.mark.parametrize(
    ("module", "said"),
    [(_MODULE, "Line 3 (`"), ("raise ImportError('wrong Python')", "`ncu_report`"), ("load_report = 1 / 0", "")],
    ids=["lines", "a module for another Python", "a module that fails"],
)
def test_the_table_is_read_whether_or_not_lines_are(monkeypatch: Any, tmp_path: Path, module: str, said: str) -> None:
    """From `ncu` to the sentences, with the child process. A module that fails says nothing."""
    program = installed(tmp_path, module)
    monkeypatch.setattr(counted_call, "nsight_compute", lambda: program)
    monkeypatch.setattr(hardware, "_NSIGHT", tmp_path / "none")
    monkeypatch.setenv("PYTHONPATH", str(program.parent / "extras" / "python"))  # before an installed module
    counted = counted_call.count(TRANSPOSE, _SOURCE, [Evidence(simulated=False, runs=(Run(CASE, us=900.0),))])
    assert isinstance(counted, Counted), counted
    assert (counted.kernel, counted.values[counters.TIME]) == ("kernel", 900)
    assert said in "".join(counted.lines)
    assert bool(counted.lines) is bool(said)
    assert set(counted.lines) <= set(measured(TRANSPOSE, counted))


def test_a_module_for_another_python_is_passed_over(monkeypatch: Any, tmp_path: Path) -> None:
    """The next folder is asked."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "ncu_report", None)  # so that the one before the test comes back
    monkeypatch.delitem(sys.modules, "ncu_report")
    for name, text in (("first", "raise ImportError"), ("second", _MODULE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ncu_report.py").write_text(text)
    found = report_lines._module([str(tmp_path / "first"), str(tmp_path / "second")])
    assert Path(found.__file__).parent.name == "second"


_STRIDED = """
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, out_ptr, n, programs, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    far = tl.program_id(0) + tl.arange(0, BLOCK) * programs
    x = tl.load(x_ptr + far, mask=far < n)
    tl.store(out_ptr + i, x, mask=i < n)


def vector_add(x, y, out):
    programs = triton.cdiv(x.numel(), 1024)
    add_kernel[(programs,)](x, out, x.numel(), programs, BLOCK=1024)
"""


@pytest.mark.gpu
@pytest.mark.timeout(900)
def test_lines_of_triton_and_of_cuda_with_wasted_sectors_are_named() -> None:
    """A load that is strided in Triton; a store down the columns in a CUDA string, by its line in the file."""
    slow = next(each for each in corpus() if each.name == "transpose/no_tile").source
    for exercise, source, text in ((ADD, _STRIDED, "tl.load(x_ptr + far"), (TRANSPOSE, slow, "out[column * height")):
        evidence = [Evidence(simulated=False, runs=(Run(exercise.timed_cases[-1], us=900.0),))]
        counted = counted_call.count(exercise, source, evidence)
        if counted in (counted_call._MISSING, counted_call._REFUSED):
            pytest.skip(str(counted))
        assert isinstance(counted, Counted), counted
        line = next(at for at, each in enumerate(source.split("\n"), start=1) if text in each)
        assert any(each.startswith(f"Line {line} (") and GLOBAL in each for each in counted.lines), counted
