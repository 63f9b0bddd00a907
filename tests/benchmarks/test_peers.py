"""Peers from other packages: a missing one is named, and a wrong one is not timed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import peers
from benchmarks.peers import LIBRARIES, PEERS, Peer, is_there, peer_calls
from grader.exercises import EXERCISES


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No peer launches anything here, so there is nothing to wait for. Earlier lines do not count."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    is_there.cache_clear()
    yield
    is_there.cache_clear()


def _offer(monkeypatch: pytest.MonkeyPatch, needs: str, fill: Callable[[torch.Tensor], Any]) -> None:
    peer = Peer("doubles", "Doubler", needs, ("softmax",), lambda arrays: lambda: fill(arrays["out"]))
    monkeypatch.setattr(peers, "PEERS", (peer,))


def test_every_peer_belongs_to_timed_exercises() -> None:
    """Rows are named after the exercise, and no baseline has the same name."""
    for peer in PEERS:
        for name in peer.exercises:
            assert EXERCISES[name].gates
            assert peer.id not in {baseline.id for baseline in EXERCISES[name].baselines}


def test_a_missing_package_is_named_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Two cases of an exercise give one line, which names the package and the module."""
    _offer(monkeypatch, "no_such_module", lambda out: out.fill_(1))
    out = torch.zeros(2)
    assert peer_calls("softmax", {"out": out}, lambda: True) == {}
    assert peer_calls("softmax", {"out": out}, lambda: True) == {}
    assert capsys.readouterr().out.splitlines() == [
        "Doubler is missing here, so no row compares softmax with it: there is no `no_such_module`."
    ]


@pytest.mark.parametrize(
    ("fill", "kept", "says"),
    [
        (lambda out: out.fill_(2), True, ""),
        (lambda out: out.fill_(3), False, "outside the budget"),
        (lambda out: None, False, "outside the budget"),
        (lambda out: out.no_such_method(), False, "does not run here"),
    ],
)
def test_a_peer_is_timed_only_if_it_is_right(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fill: Callable[[Any], Any],
    kept: bool,
    says: str,
) -> None:
    """A call that fails, writes nothing, or writes something else is left out, and a line says so."""
    _offer(monkeypatch, "", fill)
    out = torch.full((2,), 2.0)
    found = peer_calls("softmax", {"out": out}, lambda: bool((out == 2).all()))
    assert set(found) == ({"doubles"} if kept else set())
    assert says in capsys.readouterr().out


def test_other_exercises_have_no_such_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer does the work of its exercises only."""
    _offer(monkeypatch, "", lambda out: out.fill_(2))
    assert peer_calls("vector_add", {"out": torch.zeros(2)}, lambda: True) == {}


def test_astropy_gets_the_ladders_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets cycles and not angles, in float64, and neither centres the samples nor fits a mean."""
    asked: dict[str, Any] = {}

    class LombScargle:
        def __init__(self, t: Any, y: Any, **options: Any) -> None:
            asked.update(options, t=t, y=y)

        def power(self, frequency: Any, **options: Any) -> Any:
            asked.update(options, frequency=frequency)
            return frequency

    timeseries = ModuleType("astropy.timeseries")
    timeseries.LombScargle = LombScargle  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "astropy", ModuleType("astropy"))
    monkeypatch.setitem(sys.modules, "astropy.timeseries", timeseries)
    drawn = {
        "t": torch.tensor([0.0, 1.0]),
        "y": torch.tensor([1.0, -1.0]),
        "freqs": torch.tensor([math.pi, 2 * math.pi]),
    }
    for library in LIBRARIES:
        if "astropy" in library.needs:
            library.make(drawn)()
            np.testing.assert_allclose(asked["frequency"], [0.5, 1.0], rtol=1e-6)
            assert library.label == f"astropy, {asked['method']}"
            assert asked["t"].dtype == asked["y"].dtype == np.float64
            assert not asked["fit_mean"]
            assert not asked["center_data"]
            assert asked["normalization"] == "psd"
