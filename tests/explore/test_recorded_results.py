"""Predictions and recorded results, as a learner reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.explore import Picture, recorded
from grader.explore.drawing.recorded_results import _taken


def _row(case: str, metric: str, value: float, **more: object) -> dict[str, object]:
    return {"bench": "softmax", "case": case, "metric": metric, "value": value, "unit": "", "gpu": "H200"} | more


def test_recorded_results_name_their_gpu(tmp_path: Path) -> None:
    """A recorded number is always shown with its GPU and the word "recorded"."""
    old = [_row("4096 × 4096", "ratio_vs_torch", 1.23, gpu="T4", date="2025-01-01")]
    rows = [_row("4096 × 4096", "ratio_vs_torch", 1.54, date="2026-01-01"), _row("4096 × 4096", "other", 9)]
    (tmp_path / "h200.json").write_text(json.dumps(rows))
    (tmp_path / "t4.json").write_text(json.dumps(old))
    found = recorded("softmax", "ratio_vs_torch", folder=tmp_path)
    assert found.value("ratio_vs_torch", "4096 × 4096") == 1.54
    assert found.value("other", "4096 × 4096") is None
    for text in (repr(found), found._repr_html_()):
        assert "1.54" in text
        assert "times as fast as torch" in text
        assert "Recorded on one H200 on 2026-01-01" in text
        assert "Not measured on this machine" in text


def test_recorded_numbers_are_short(tmp_path: Path) -> None:
    """Ratios and shares have two decimals, tiny ones two digits, other numbers four, and commands are not shown."""
    rows = [
        _row("a", "ratio_vs_torch", 4.0, command="make bench"),
        _row("a", "share_of_copy", 0.98359),
        _row("b", "ratio_vs_torch", 0.003934),
        _row("a", "build_s", 19.70885, unit="s"),
        _row("b", "build_s", 0.02668, unit="s"),
        _row("b", "idle_gap_us", 5.0, unit="µs"),
    ]
    (tmp_path / "h200.json").write_text(json.dumps(rows))
    shown = recorded("softmax", "ratio_vs_torch", "share_of_copy", "build_s", "idle_gap_us", folder=tmp_path)
    assert "<th>idle gap (µs)</th>" in shown._repr_html_()
    for text in (
        "<td>4.00</td><td>0.98</td><td>19.71</td>",
        "<td>0.0039</td><td></td><td>0.02668</td>",
        "seconds to build",
    ):
        assert text in shown._repr_html_()
    assert "make bench" not in shown._repr_html_()
    assert len({len(line) for line in repr(shown).splitlines()[:-1]}) == 1


@pytest.mark.parametrize("content", [None, "[]", "no json", '{"rows": [1, {"bench": "softmax"}]}'])
def test_nothing_recorded_is_said(tmp_path: Path, content: str | None) -> None:
    """Without a result, or with a broken file, only the way to record one is shown."""
    if content is not None:
        (tmp_path / "gpu.json").write_text(content)
    found = recorded("softmax", "ratio_vs_torch", folder=tmp_path)
    assert found.value("ratio_vs_torch", "4096 × 4096") is None
    assert "No recorded result yet for softmax" in found._repr_html_()


PLOTTED = [
    _row("1 × 132 programs, block 1,024, 4 warps", "bandwidth_gbps", 1101, unit="GB/s"),
    _row("2 × 132 programs, block 1,024, 4 warps", "bandwidth_gbps", 1955, unit="GB/s"),
    _row("2 × 132 programs, block 512, 8 warps", "bandwidth_gbps", 0.5, unit="GB/s"),
    _row("torch.mean", "bandwidth_gbps", 3373, unit="GB/s"),
]


def test_a_plot_says_every_value_and_its_origin(tmp_path: Path) -> None:
    """The alt text replaces the table; the picture has a panel per block and a line across for the rest."""
    (tmp_path / "h200.json").write_text(json.dumps(PLOTTED))
    found = recorded("softmax", "bandwidth_gbps", folder=tmp_path)
    picture = found.plot("{} × 132 programs", "programs per SM", "block {}")
    assert isinstance(picture, Picture)
    assert picture.alt.startswith(
        "bandwidth (GB/s) over programs per SM. 1 × 132 programs, block 1,024, 4 warps: 1,101;"
    )
    assert "block 512, 8 warps: 0.5; torch.mean: 3,373." in picture.alt
    assert "Recorded on one H200" in picture.alt
    assert picture.svg.count('<g id="axes_') == 2
    dots = found.plot()
    assert isinstance(dots, Picture)
    assert dots.svg.count('<g id="axes_') == 1
    assert "torch.mean: 3,373." in dots.alt
    assert "does not start at 0" not in dots.alt


def test_dots_that_are_close_can_be_told_apart(tmp_path: Path) -> None:
    """Their axis does not start at 0, which it says; they have intervals and one more digit."""
    rows = [
        _row("Triton", "ratio_vs_cublas", 0.96436, low=0.9618, high=0.9655),
        _row("C++", "ratio_vs_cublas", 1.00304),
    ]
    (tmp_path / "h200.json").write_text(json.dumps(rows))
    picture = recorded("softmax", "ratio_vs_cublas", folder=tmp_path).plot()
    assert isinstance(picture, Picture)
    assert picture.alt.startswith(
        "times as fast as cuBLAS, with 95 % intervals; the axis does not start at 0. Triton: 0.9644; C++: 1.003."
    )


@pytest.mark.parametrize(
    ("template", "text", "taken"),
    [
        ("{} × 132 programs", "16 × 132 programs, block 1,024", (16, "block 1,024")),
        ("block {}", "block 1,024, 4 warps", (1024, "4 warps")),
        (", {}", "descriptors, persistent grid, 4096", (4096, "descriptors, persistent grid")),
        ("{} elements", "4,194,304 elements", (4194304, "")),
        ("{} elements", "torch.mean", (None, "torch.mean")),
    ],
)
def test_a_case_is_split_into_position_and_line(template: str, text: str, taken: tuple[int | None, str]) -> None:
    """The number is the position; the rest of the name is the name of the line."""
    assert _taken(template, text) == taken


def test_a_plot_of_nothing_is_the_sentence(tmp_path: Path) -> None:
    """A plot without rows would hide that nothing is recorded."""
    found = recorded("softmax", "bandwidth_gbps", folder=tmp_path)
    assert found.plot("{} elements", "elements") is found


def test_rows_of_two_days_name_both(tmp_path: Path) -> None:
    """A case that was added later was not measured on the first day."""
    rows = [_row("a", "ratio_vs_torch", 1, date="2026-01-02"), _row("b", "ratio_vs_torch", 2, date="2026-01-01")]
    (tmp_path / "h200.json").write_text(json.dumps(rows))
    found = recorded("softmax", "ratio_vs_torch", folder=tmp_path)
    assert found.origin.startswith("Recorded on one H200 on 2026-01-01 and 2026-01-02.")
