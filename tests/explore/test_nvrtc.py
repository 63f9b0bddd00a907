"""What NVRTC makes of a source is shown without a GPU, and what is shown is what it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.explore import results
from grader.explore.nvrtc import nvrtc_view
from grader.explore.past import H200, draw_ladder, last_rung_view
from grader.explore.published import PUBLISHED, published_ladder

_SCALED = 'extern "C" __global__ void f(const float* x, float* out) {{ out[0] = {0} * x[0]; }}'
_SINE = 'extern "C" __global__ void f(const float* x, float* out) { out[0] = sinf(x[0]); }'


@pytest.mark.parametrize(("literal", "doubles"), [("0.1", 3), ("0.1f", 0), ("2.0", 0)])
def test_a_double_literal_is_seen_in_the_machine_code(literal: str, doubles: int) -> None:
    """A conversion, a multiplication and a conversion back; a factor of 2 is exact either way."""
    assert nvrtc_view(_SCALED.format(literal)).count("double") == doubles


def test_fast_math_makes_a_sine_one_instruction() -> None:
    """And the accurate one has none of the special-function unit's."""
    assert nvrtc_view(_SINE).count("MUFU.SIN") == 0
    fast = nvrtc_view(_SINE, "--use_fast_math")
    assert fast.count("MUFU.SIN") == 1
    assert len(fast.instructions) < 20


def test_registers_are_told_for_each_kernel_and_architecture() -> None:
    """A kernel of many sums takes more."""
    view = nvrtc_view(_SINE + _SCALED.format("2.0f").replace("f(", "g("), capability=80)
    assert set(view.registers) == {"f", "g"}
    assert all(8 <= count <= 255 for count in view.registers.values())
    assert "sm_80" in repr(view)
    assert "SASS" in view._repr_html_()


def test_what_does_not_compile_is_told_in_nvrtcs_words() -> None:
    """With the line of the text."""
    with pytest.raises(RuntimeError, match=r'kern\.cu\(2\): error: identifier "b" is undefined'):
        nvrtc_view('extern "C" __global__ void f() {\n int a = b; }')


def test_the_last_rungs_sines_are_the_special_function_units() -> None:
    """As many sines as cosines: they are the ceiling that is computed."""
    view = last_rung_view()
    assert view.count("MUFU.SIN") == view.count("MUFU.COS") > 0
    assert H200.special_ms() == pytest.approx(2 * 2**30 / (16 * 132 * 1.98e9) * 1e3)


def test_the_chart_and_the_table_say_where_their_figures_are_from() -> None:
    """Without a recorded run the published one is shown, and named so."""
    alt = draw_ladder().alt
    assert "Published for one V100" in alt or "Recorded on one" in alt
    for library in PUBLISHED:
        assert "V100" in repr(published_ladder(library))
    with pytest.raises(ValueError, match="none for 'JAX'"):
        published_ladder("JAX")


def test_the_chart_draws_what_was_recorded_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy once, both ladders and what is past them, with the ceilings of that GPU; no float64, no other knobs."""
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
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    alt = draw_ladder().alt
    assert "Recorded on one NVIDIA H200 on 2026-01-01" in alt
    assert "SciPy on the CPU 44,000 ms, Numba baseline 3.5 ms, CuPy launch bounds 0.65 ms" in alt
    assert "rotation 0.4 ms, FFT 0.1 ms." in alt
    assert "5.5" not in alt
    assert "0.5 ms" not in alt
    assert "at least 0.51 ms" in alt
