"""The benchmarks that the exercise `audit` puts before a learner's function: sound ones, and nine kinds that lie.

A trial is a list of numbers, and a benchmark can be called and no more, so that nothing at hand names a lie. That
cannot hide it from a submission that reads these files: what runs in a process can know all that the process knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grader.worker.call_only import CallOnly
from grader.worker.on_trial.lying import LYING
from grader.worker.on_trial.sound import ByTurns, Copies, LongerWarmUp, MoreOfOne, OnASideStream, Sound, Trial

__all__ = ["LIES", "STYLES", "VARIANTS", "Trial", "bring"]

_SOUND = (Sound, Sound, Sound, Sound, OnASideStream, Copies, LongerWarmUp, ByTurns, MoreOfOne)
_WAYS: tuple[tuple[type[Sound], ...], ...] = (_SOUND, *LYING)
LIES = len(LYING)  # numbered from 1, in the order of the notebook; 0 is a sound one
VARIANTS = len(LYING[0])  # of each lie
STYLES = len(_SOUND)  # of sound ones


def bring(numbers: Sequence[int]) -> Callable[..., float]:
    """The benchmark `(kernel, baseline, make_input, machine) -> claimed speed-up`, 0 where the results differ.

    `kernel` and `baseline` take a tensor and return one; `make_input()` makes a tensor; `machine` is one of
    `grader.worker.machines`.
    """
    trial = Trial(*numbers)

    def benchmark(
        kernel: Callable[[Any], Any], baseline: Callable[[Any], Any], make_input: Callable[[], Any], machine: Any
    ) -> float:
        return _WAYS[trial.kind][trial.way](trial, (kernel, baseline), make_input, machine).claim()

    return CallOnly(benchmark)
