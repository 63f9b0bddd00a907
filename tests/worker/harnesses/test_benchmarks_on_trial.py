"""The benchmarks of `audit`: sound ones claim the truth, and every lie can be detected."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from grader.exercises.profiling.audit import AUDIT, LIES, ON_TRIAL
from grader.protocol.channel import from_bytes
from grader.worker.harnesses.benchmark_machine import PretendGpu
from grader.worker.harnesses.benchmarks_on_trial import LIES as KINDS
from grader.worker.harnesses.benchmarks_on_trial import STYLES, VARIANTS, bring

# The lies that change the claim for two functions with known times: kind and variants.
_SEEN_BY_THE_CLOCK = {1: (0, 1, 2), 3: (0, 1, 2), 5: (0, 1, 2), 8: (0, 2)}
_SETTINGS = list(itertools.product((6, 10), (1, 3), range(4), (0, 1), (0, 1)))


class Diary:
    """Two functions with known times and a slow first call each, and a record of their arguments."""

    def __init__(self) -> None:
        self.gpu = PretendGpu()
        self.made: list[Any] = []
        self.calls: list[tuple[float, Any, bool]] = []

    def make_input(self) -> Any:
        self.made.append(torch.randn(64))
        return self.made[-1]

    def takes(self, seconds: float) -> Any:
        def function(x: Any) -> Any:
            first = all(taken != seconds for taken, *_ in self.calls)
            self.gpu.run(20 * seconds if first else seconds)
            self.calls.append((seconds, x, torch.is_autocast_enabled("cpu")))
            return 2 * x

        return function

    def claim(self, numbers: tuple[int, ...]) -> float:
        return bring(numbers)(self.takes(1e-3), self.takes(3e-3), self.make_input, self.gpu)

    def altered(self) -> bool:
        known = {(m.dtype, m.stride(), tuple(m.tolist())) for m in self.made}
        return any(on or (x.dtype, x.stride(), tuple(x.tolist())) not in known for _, x, on in self.calls)

    def hot(self) -> bool:
        calls = [(seconds, x.data_ptr()) for seconds, x, _ in self.calls]
        return len(set(calls)) < len(calls) or any(one[1] == two[1] for one, two in itertools.pairwise(calls))


def _praises_idleness(numbers: tuple[int, ...]) -> bool:
    """Return whether a kernel is praised that is right once and then does nothing."""
    diary, calls = Diary(), []

    def idle(x: Any) -> Any:
        calls.append(x)
        return 2 * x if len(calls) == 1 else torch.zeros_like(x)

    return bring(numbers)(idle, diary.takes(3e-3), diary.make_input, diary.gpu) > 0


@pytest.mark.parametrize("style", range(STYLES))
def test_a_sound_benchmark_is_sound(style: int) -> None:
    """It claims the truth, passes on the inputs unchanged and cold, and praises no kernel that does nothing."""
    for settings in _SETTINGS:
        diary = Diary()
        assert diary.claim((0, style, *settings)) == pytest.approx(3, rel=0.03), settings
        assert (diary.altered(), diary.hot()) == (False, False), settings
        assert not _praises_idleness((0, style, *settings)), settings


@pytest.mark.parametrize(
    ("kind", "way"), [(0, style) for style in range(STYLES)] + list(itertools.product((6, 7), range(VARIANTS)))
)
def test_an_address_belongs_to_one_tensor_while_a_benchmark_runs(kind: int, way: int) -> None:
    """A spy that remembers only addresses never mistakes cold data for hot data."""
    for settings in _SETTINGS:
        seen: list[tuple[int, int]] = []

        def spy(who: int, seen: list[tuple[int, int]] = seen) -> Any:
            def function(x: Any) -> Any:
                seen.append((who, x.data_ptr()))
                return 2 * x

            return function

        bring((kind, way, *settings))(spy(0), spy(1), lambda: torch.randn(64), PretendGpu())
        assert len(set(seen)) == len(seen), settings
        assert not any(one[1] == two[1] for one, two in itertools.pairwise(seen)), settings


@pytest.mark.parametrize(("kind", "way"), list(itertools.product(range(1, KINDS + 1), range(VARIANTS))))
def test_each_lie_is_seen_by_its_probe(kind: int, way: int) -> None:
    """A lie about time shows in the claim; the others show in the inputs, or in praise for an idle kernel."""
    for settings in _SETTINGS:
        diary = Diary()
        claim = diary.claim((kind, way, *settings))
        if way in _SEEN_BY_THE_CLOCK.get(kind, ()):
            assert not 2 < claim < 4.5, settings
        elif LIES[kind - 1] == "hot data":
            assert diary.hot(), settings
        elif LIES[kind - 1] == "dead code":
            assert claim == pytest.approx(3, rel=0.03), settings
            assert (diary.altered(), diary.hot()) == (False, False), settings
            assert _praises_idleness((kind, way, *settings)), settings
        else:
            assert diary.altered(), settings


def test_a_set_holds_each_lie_and_each_style_once() -> None:
    """The three sets have the three variants, in a new random order each time."""
    drawn = []
    for case in AUDIT.simulator_cases:
        assert AUDIT.draw is not None
        for _ in range(2):
            inputs = {name: value.double() for name, value in AUDIT.draw(case, None, None).items()}
            kinds = [tuple(trial[:2]) for trial in from_bytes(inputs["trials"])["trials"]]
            drawn.append(kinds)
            assert sorted(kind for kind, _ in kinds) == [0] * STYLES + list(range(1, KINDS + 1))
            assert sorted(way for kind, way in kinds if kind == 0) == list(range(STYLES))
            assert AUDIT.oracle(inputs).tolist() == [float(kind == 0) for kind, _ in kinds]
    assert {trial for kinds in drawn for trial in kinds if trial[0]} == set(
        itertools.product(range(1, KINDS + 1), range(VARIANTS))
    )
    assert len({tuple(kinds) for kinds in drawn}) == len(drawn)
    assert len(AUDIT.answers) == ON_TRIAL == len(drawn[0])
