"""A learner's rungs beside each other: each is what its own cell says, whatever later cells are named alike."""

from __future__ import annotations

import linecache
from types import SimpleNamespace
from typing import Any

import pytest

from grader.explore import climb

FIRST = "scale = 2\ndef double(x):\n    return scale * x\n"
SECOND = "scale = 3\ndef triple(x):\n    return scale * x\n"


def _notebook(monkeypatch: pytest.MonkeyPatch, **cells: str) -> dict[str, Any]:
    """The names of a notebook after its cells were run one after the other, as IPython runs them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for name, text in cells.items():
        monkeypatch.setitem(linecache.cache, f"<{name}>", (len(text), None, text.splitlines(True), f"<{name}>"))
        exec(compile(text, f"<{name}>", "exec"), names)
    return names


def test_a_later_cell_does_not_change_an_earlier_rung(monkeypatch):
    """Every rung has a `source` and its `kernels`: the functions are called with those of their own cells."""
    names = _notebook(monkeypatch, first=FIRST, second=SECOND)
    assert names["double"](1) == 3  # the notebook's own has been overwritten
    assert [climb._alone(names[name])(1) for name in ("double", "triple")] == [2, 3]


def test_a_cell_that_needs_another_runs_as_it_stands_in_the_notebook(monkeypatch):
    """What cannot be run alone is not lost: the table then says what the notebook's function does."""
    names = _notebook(monkeypatch, first=FIRST, second="half = scale / 4\ndef halve(x):\n    return half * x\n")
    assert climb._alone(names["halve"])(1) == 0.5


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
    """Whatever else a learner keeps in `kernels`, and whatever it is: nothing is raised."""
    names = {"kernels": kernels}
    exec("def rung(): pass", names)
    assert climb._registers(names["rung"]) == registers
    assert climb._registers(len) is None
