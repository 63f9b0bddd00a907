"""The bench `past` without a GPU: the reference solution's constants, and ways that are too slow."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from benchmarks import past
from benchmarks.past import _FFT, LAST, STEPS, THREADS, _faults, in_float64, with_knobs
from benchmarks.peers import Library, is_there
from grader.authoring.stubs import solution
from tests.mistakes.corpus import read


def test_each_knob_is_one_constant_of_the_reference_solution() -> None:
    """The sweep changes the solution's constants and includes its own values."""
    reference = solution("ls_open")
    turned = with_knobs(reference, STEPS=8, THREADS=64)
    assert "\nSTEPS = 8 " in turned
    assert "\nTHREADS = 64 " in turned
    assert reference in [with_knobs(reference, STEPS=s, THREADS=n) for s in STEPS for n in THREADS]
    with pytest.raises(ValueError, match="WARPS"):
        with_knobs(reference, WARPS=4)


def test_the_accurate_rotation_has_another_text() -> None:
    """It calls the accurate sine and cosine."""
    assert "__sincosf(" in solution("ls_open")


def test_the_fft_is_a_right_solution_of_the_corpus() -> None:
    """The same FFT is also graded as a submission."""
    assert read(_FFT).right


def test_the_fft_in_float64_has_no_number_in_float32() -> None:
    """All arrays and functions are float64, and numbers have no suffix."""
    wide = in_float64(_FFT.read_text("utf-8"))
    assert not re.search(r"float32|float2?\b|complex64|\df\b|[a-z0-9]f\(|}f\b", wide)
    assert "double* grid" in wide
    assert "\nWIDTH = 12 " in wide
    assert "\nFINER = 2 " in wide


@pytest.mark.parametrize(
    ("rotation", "fft", "digits", "told"),
    [(0.5, 0.1, 5.0, 0), (0.8, 0.1, 5.0, 1), (0.5, 0.3, 5.0, 1), (0.5, 0.1, 4.5, 1), (0.5, 0.1, 3.0, 2)],
)
def test_a_way_that_is_slow_or_inaccurate_is_reported(rotation: float, fft: float, digits: float, told: int) -> None:
    """Rotation needs 1.5 times the last rung's speed and an error of 2e-5, the FFT 5 times and 1e-4."""
    times = {LAST: [1.0] * 9, "rotation": [rotation] * 9, "FFT": [fft] * 9}
    assert len(_faults(times, dict.fromkeys(times, digits))) == told


def test_libraries_that_are_missing_or_fail_or_are_wrong_get_no_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing one is named, one that raises or is wrong is a fault, and the others are timed and compared."""

    def broken(drawn: Any) -> Any:
        raise ValueError("no such method")

    rows: list[tuple[Any, ...]] = []
    recorder: Any = type("Rows", (), {"add": lambda self, *row: rows.append(row)})()
    power = torch.tensor([1.0, 2.0], dtype=torch.float64)
    libraries = (
        Library("right", ("math",), lambda drawn: lambda: drawn["y"] + 1),
        Library("missing", ("math", "no_such_module"), broken),
        Library("broken", ("math",), broken),
        Library("wrong", ("math",), lambda drawn: lambda: drawn["y"]),
        Library("nan", ("math",), lambda drawn: lambda: drawn["y"] * float("nan")),
    )
    monkeypatch.setattr(past, "LIBRARIES", libraries)
    monkeypatch.setattr(past, "scipy_time_ms", lambda drawn: 100.0)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    is_there.cache_clear()
    faults = past._libraries(recorder, {"y": power - 1}, power, 10.0)
    is_there.cache_clear()
    assert faults == [
        "ladder/past: broken: ValueError: no such method",
        "ladder/past: wrong: ValueError: only 0.3 digits are correct",
        "ladder/past: nan: ValueError: only nan digits are correct",
    ]
    assert "missing is missing here" in capsys.readouterr().out
    assert {row[1] for row in rows} == {"SciPy on the CPU, float64", "right, float64"}
    assert ("ladder/past", "right, float64", "correct_digits", "1", 17.0) in rows
    assert ("ladder/past", "SciPy on the CPU, float64", "ratio_vs_last_rung", "1", 0.1) in rows
