"""The ladder's tables and chart name the source of their figures."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.explore.drawing import recorded_results
from grader.explore.ladder import rung_times
from grader.explore.ladder.rung_times import H200, PUBLISHED, draw_ladder, last_rung_view, published_ladder

FIRST = "scale = 2\ndef double(x):\n    return scale * x\n"
SECOND = "scale = 3\ndef triple(x):\n    return scale * x\n"


def _notebook(monkeypatch: pytest.MonkeyPatch, **cells: str) -> dict[str, Any]:
    """Return the names of a notebook after running its cells in order, as IPython does."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for name, text in cells.items():
        monkeypatch.setitem(linecache.cache, f"<{name}>", (len(text), None, text.splitlines(True), f"<{name}>"))
        exec(compile(text, f"<{name}>", "exec"), names)
    return names


def test_a_later_cell_does_not_change_an_earlier_rung(monkeypatch):
    """Every rung has its own `source` and `kernels`: a function is called with those of its own cell."""
    names = _notebook(monkeypatch, first=FIRST, second=SECOND)
    assert names["double"](1) == 3  # the notebook's own has been overwritten
    assert [rung_times._alone(names[name])(1) for name in ("double", "triple")] == [2, 3]


def test_a_cell_that_needs_another_runs_as_it_stands_in_the_notebook(monkeypatch):
    """If a cell cannot run alone, the table uses the notebook's function."""
    names = _notebook(monkeypatch, first=FIRST, second="half = scale / 4\ndef halve(x):\n    return half * x\n")
    assert rung_times._alone(names["halve"])(1) == 0.5


@pytest.mark.parametrize(
    ("kernels", "registers"),
    [
        ({"f": SimpleNamespace(num_regs=32)}, 32),
        ({"f": (20, SimpleNamespace(num_regs=40)), "d": [SimpleNamespace(num_regs=64)]}, 40),
        ({"f": (20, 128), "d": None}, None),
        ([SimpleNamespace(num_regs=32)], None),
        ({}, None),
    ],
)
def test_registers_are_those_of_the_first_kernel_that_is_kept(kernels, registers):
    """Other values in `kernels`, or `kernels` of another type, do not raise."""
    names = {"kernels": kernels}
    exec("def rung(): pass", names)
    assert rung_times._registers(names["rung"]) == registers
    assert rung_times._registers(len) is None


def test_the_last_rungs_sines_are_the_special_function_units() -> None:
    """It has as many sines as cosines, as the computed ceiling assumes."""
    view = last_rung_view()
    assert view.count("MUFU.SIN") == view.count("MUFU.COS") > 0
    assert H200.special_ms() == pytest.approx(2 * 2**30 / (16 * 132 * 1.98e9) * 1e3)


def test_the_chart_and_the_table_say_where_their_figures_are_from() -> None:
    """Without a recorded run the published one is shown and named as published."""
    alt = draw_ladder().alt
    assert "Published for one V100" in alt or "Recorded on one" in alt
    for library in PUBLISHED:
        assert "V100" in repr(published_ladder(library))
    with pytest.raises(ValueError, match="none for 'JAX'"):
        published_ladder("JAX")


def test_the_chart_draws_what_was_recorded_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has SciPy once, both ladders, the later rungs and that GPU's ceilings, but no float64 or other benches."""
    cases = {
        "ladder/numba": {"baseline, float32": 3.5, "baseline, float64": 5.5, "SciPy on the CPU, float32": 44_000.0},
        "ladder/cupy": {"launch_bounds, float32": 0.65, "SciPy on the CPU, float32": 44_000.0},
        "ladder/past": {"the last rung, float32": 0.66, "rotation, float32": 0.4, "FFT, float32": 0.1},
        "ladder/steps": {"8 frequencies, 64 threads": 0.5},
    }
    rows = [
        {"bench": bench, "case": case, "metric": "median_ms", "value": ms, "unit": "ms", "gpu": "NVIDIA H200",
         "date": "2026-01-01"}
        for bench, times in cases.items() for case, ms in times.items()
    ]  # fmt: skip
    (tmp_path / "nvidia-test.json").write_text(json.dumps(rows))
    monkeypatch.setattr(recorded_results, "RESULTS", tmp_path)
    alt = draw_ladder().alt
    assert "Recorded on one NVIDIA H200 on 2026-01-01" in alt
    assert "SciPy on the CPU 44,000 ms, Numba baseline 3.5 ms, CuPy launch bounds 0.65 ms" in alt
    assert "rotation 0.4 ms, FFT 0.1 ms." in alt
    assert "5.5" not in alt
    assert "0.5 ms" not in alt
    assert "at least 0.51 ms" in alt
