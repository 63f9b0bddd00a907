"""Evidence about one call: the operations of torch in the lines of a submission."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from grader.worker.evidence import gather

_CELL = """
import torch

def work(x):
    return torch.relu(x * 2) + 1
"""


def _work() -> Any:
    made: dict[str, Any] = {}
    exec(compile(_CELL, "submission.py", "exec"), made)
    return made["work"]


def _seen(function: Any) -> list[tuple[str, int]]:
    x = torch.ones(8)
    return [(each["name"], each["line"]) for each in gather(lambda entry: entry(x), function)["operations"]]


def test_operations_are_listed_with_their_lines() -> None:
    """Each of them reads and writes memory."""
    assert _seen(_work()) == [("mul", 5), ("relu", 5), ("add", 5)]


def test_a_full_graph_can_be_watched_before_and_after_it_is_compiled() -> None:
    """Its operations are fused on a GPU, so none is listed; the function can still be called afterwards."""
    torch.compiler.reset()
    whole = torch.compile(_work(), fullgraph=True, dynamic=False, backend=lambda graph, _: graph.forward)
    assert _seen(whole) == []
    assert _seen(whole) == []
    assert whole(torch.ones(4)).tolist() == [3.0] * 4


_ON_THE_HOST = """
import torch
from triton import jit

def waits(x):
    assert not torch.isnan(x).any()
    return x if x.sum() > 0 else -x

def double(x):
    y = x.double()
    return y.mul_(2)

def builds(x):
    @jit
    def kernel(x_ptr):
        pass
    return x
"""


def test_the_host_and_double_precision_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for each `assert` and `if` on a tensor; what works in place reads and writes."""
    made: dict[str, Any] = {}
    cell = tmp_path / "submission.py"
    cell.write_text(_ON_THE_HOST, encoding="utf-8")
    exec(compile(_ON_THE_HOST, str(cell), "exec"), made)
    x = torch.ones(8)

    def found(name: str) -> dict[str, Any]:
        return gather(lambda entry: entry(x), made[name])

    assert [(each["kind"], each["line"]) for each in found("builds")["host"]] == [("builds", 14)]
    assert found("waits")["host"] == []  # for a tensor on the CPU
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert [(each["kind"], each["line"]) for each in found("waits")["host"]] == [("waits", 6), ("waits", 7)]
    converted, doubled = found("double")["operations"]
    assert (converted["double"], doubled["double"]) == (64, 64)
    assert (converted["bytes"], doubled["bytes"]) == (32 + 64, 128)


def test_what_the_simulator_itself_copies_is_no_operation() -> None:
    """It moves new tensors to memory with guards."""
    from grader.worker.simulator import tally

    def work(x: Any) -> Any:
        with tally.own_work():
            return x.clone()

    assert _seen(work) == []
