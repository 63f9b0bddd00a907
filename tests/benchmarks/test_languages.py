"""The bench of one product in several languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import languages
from grader.explore.hopper.language_views import FILES


def test_a_language_that_is_not_installed_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The products are those of the notebook and the reference solution; cuTile is missing here, and gets no row."""
    found = languages.products(tmp_path)
    variants = languages.WAITING, languages.FLATTENED
    assert list(found) == [*(name for name in FILES if name != "cuTile"), *variants]
    assert "cuTile is not measured: cuda.tile is not installed." in capsys.readouterr().out


def test_a_product_that_cannot_run_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets no row, and the bench ends with its error. A wrong product ends the bench without any row."""
    rows: list[str] = []
    faults = {"Gluon": RuntimeError("no TMA here")}

    def right(name: str, product: Any, arrays: Any) -> None:
        if name in faults:
            raise faults[name]

    class Recorder:
        def add(self, bench: str, case: str, metric: str, *_: Any) -> None:
            rows.append(f"{case} {metric}")

    monkeypatch.setattr(languages, "drawn", lambda size: (None, None, None))
    monkeypatch.setattr(languages, "products", lambda folder: dict.fromkeys(("Triton", "Gluon"), lambda *_: None))
    monkeypatch.setattr(languages, "must_be_right", right)
    monkeypatch.setattr(languages, "in_turn", lambda calls, *_: {name: [100.0] * 60 for name in calls})
    with pytest.raises(languages.Fault, match="Gluon: RuntimeError: no TMA here"):
        languages.languages(Recorder())  # type: ignore[arg-type]
    assert rows == [
        f"{name} {metric}" for name in ("Triton", "cuBLAS") for metric in ("rate_tflops", "ratio_vs_cublas")
    ]
    rows.clear()
    faults["Triton"] = ArithmeticError("wrong")  # type: ignore[assignment]
    with pytest.raises(ArithmeticError, match="wrong"):
        languages.languages(Recorder())  # type: ignore[arg-type]
    assert rows == []
