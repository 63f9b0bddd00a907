"""A function that is passed to a submission can be called but not inspected."""

from __future__ import annotations

import copy

import pytest

from grader.worker.harnesses.benchmarks_on_trial import bring
from grader.worker.harnesses.timed_work import callable_of
from grader.worker.outputs import CallOnly


def test_it_calls_what_it_was_made_of() -> None:
    """Each calls its own function with the arguments."""
    assert (CallOnly(max)(3, 5), CallOnly(min)(3, 5)) == (5, 3)


@pytest.mark.parametrize("function", [bring([4, 1, 6, 2, 0, 1, 0]), callable_of({"first_ms": 7, "operation": "add"})])
def test_it_has_no_state_to_look_at(function: object) -> None:
    """It has no closure, no attribute, and no copy that holds more."""
    names = ("__closure__", "__code__", "__globals__", "__dict__", "__defaults__", "__self__", "__wrapped__", "func")
    assert [name for name in names if hasattr(function, name)] == []
    with pytest.raises(KeyError):
        copy.copy(function)()  # type: ignore[operator]
