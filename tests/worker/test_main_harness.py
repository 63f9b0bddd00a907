"""A harness's imports are bound before there is a submission, which cannot replace them."""

from __future__ import annotations

import importlib
import sys

import pytest

from grader.worker.main import bind_harness

_TEXT = """
from typing import Any

def measure(entry: Any, x: Any) -> Any:
    from math import sqrt
    if x:
        from grader.worker.harnesses.triton_kernels import load_widths
        import grader.worker.harnesses.triton_kernels
    return entry(sqrt(x)), load_widths
"""


@pytest.fixture(autouse=True)
def _unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grader.worker.harnesses.triton_kernels", "grader.worker.harnesses.triton_kernels"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_imports_are_done_once_and_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change to a module has no effect, wherever the import is in the harness."""
    measure = bind_harness(_TEXT, "measure")
    monkeypatch.setattr("math.sqrt", lambda x: -1)
    assert measure(lambda root: root, 9)[0] == 3


def test_what_a_harness_brings_of_the_grader_is_its_own() -> None:
    """Another import gets another copy, and the harness itself cannot be imported."""
    before = set(sys.modules)
    measure = bind_harness(_TEXT, "measure")
    assert "harness" not in sys.modules
    assert not any(name.startswith("grader.") for name in sys.modules.keys() - before)
    import grader.worker
    from grader.worker.harnesses import triton_kernels

    assert triton_kernels.load_widths is not measure(lambda root: root, 9)[1]
    assert grader.worker.harnesses.triton_kernels is triton_kernels
    assert not hasattr(grader.worker, "true_hints")


def test_modules_that_were_there_stay() -> None:
    """It shares the worker's own modules, because the simulator has one state."""
    loads = importlib.import_module("grader.worker.harnesses.triton_kernels")
    assert bind_harness(_TEXT, "measure")(lambda root: root, 9)[1] is loads.load_widths
    assert sys.modules["grader.worker.harnesses.triton_kernels"] is loads
