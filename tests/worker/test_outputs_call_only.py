"""A function that is passed to a submission can be called but not inspected."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

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


@pytest.mark.parametrize("name", ["__closure__", "func", "kind", "trial", "__name__", "_functions"])
def test_no_attribute_can_be_set(name: str) -> None:
    """So nothing replaces a part of it."""
    with pytest.raises(AttributeError):
        setattr(bring([4, 1, 6, 2, 0, 1, 0]), name, None)


def test_nothing_leads_from_it_to_its_function() -> None:
    """It refers to its class alone, it prints no more than that, and a pickled copy is empty."""
    function = bring([4, 1, 6, 2, 0, 1, 0])
    assert [name for name in dir(function) if not name.startswith("__")] == []
    assert gc.get_referents(function) == [CallOnly]
    assert [each() for each in weakref.getweakrefs(function)] == [function]
    assert "benchmark" not in f"{function!r} {function}".replace(CallOnly.__module__, "")
    with pytest.raises(TypeError):
        vars(function)
    again = pickle.loads(pickle.dumps(function))
    with pytest.raises(KeyError):
        again()
