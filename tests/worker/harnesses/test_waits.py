"""Calls at which the CPU would wait for a GPU are counted on the CPU."""

import pytest
import torch

from grader.worker.harnesses.waits import count_waits
from grader.worker.toolchain import forked


def _waits(monkeypatch: pytest.MonkeyPatch, function) -> int:
    monkeypatch.setattr(forked, "facts", [])
    x = torch.arange(12.0).reshape(4, 3)
    given = function(x)
    assert torch.equal(count_waits(function, len(x), x), given)
    (fact,) = forked.facts
    assert fact["rows"] == 4
    return fact["waits"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.max().item(),
        lambda x: x * float(x[0, 1]),
        lambda x: x if x.any() else -x,
        lambda x: x.cpu(),
        lambda x: x.to("cpu"),
        lambda x: x.to(device="cpu"),
        lambda x: (print(x.max()), x)[1],
        lambda x: x * len(f"{x[0, 0]}"),
        lambda x: torch.tensor(x.tolist()),
        lambda x: torch.from_numpy(x.numpy()),
        lambda x: x[x > 3],
        lambda x: torch.masked_select(x, x > 3),
        lambda x: torch.nonzero(x),
        lambda x: torch.unique(x),
    ],
)
def test_what_asks_for_a_value_counts(monkeypatch, function):
    """Once."""
    assert _waits(monkeypatch, function) == 1


def test_what_stays_on_the_gpu_does_not_count(monkeypatch):
    """Reductions, selections by `where`, and moves to the device of a tensor."""

    def function(x):
        low, high = torch.aminmax(x, dim=1, keepdim=True)
        return torch.where(low == high, 0.0, x - x.mean(1, keepdim=True)).to(x.device).clamp(-3, 3)[:, [0, 1]]

    assert _waits(monkeypatch, function) == 0


def test_each_row_counts(monkeypatch):
    """Two values of each of four rows."""
    assert (
        _waits(monkeypatch, lambda x: torch.stack([row / (row.max().item() + row.min().item() + 1) for row in x])) == 8
    )
