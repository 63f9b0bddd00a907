"""A sound benchmark, and other styles of it that are as sound."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, median
from typing import Any, NamedTuple

__all__ = [
    "BASELINE", "EVENTS_ALL", "EVENTS_EACH", "HOST_ALL", "HOST_EACH", "KERNEL", "LOOSE",
    "ByTurns", "Copies", "LongerWarmUp", "MoreOfOne", "OnASideStream", "Sound", "Trial",
]  # fmt: skip

KERNEL, BASELINE = 0, 1
HOST_EACH, HOST_ALL, EVENTS_EACH, EVENTS_ALL = range(4)
STRICT, LOOSE = 1e-5, 5e-2
_LEAST_S = 1e-9


class Trial(NamedTuple):
    """One benchmark: `kind` is 0 where it is sound, `way` the variant of the lie or the style."""

    kind: int
    way: int
    repeats: int  # at least 6, even
    early: int  # calls before the timed ones
    watch: int  # which of four stopwatches
    kernel_first: int
    median: int  # instead of the mean; of sound ones that time each call


class Sound:
    """One call of a benchmark. Each variant of a lie is this class with one thing changed."""

    tolerance = STRICT
    watches: tuple[int, ...] = (HOST_EACH, HOST_ALL, EVENTS_EACH, EVENTS_ALL)

    def __init__(self, trial: Trial, functions: tuple[Any, Any], make_input: Callable[[], Any], machine: Any) -> None:
        self.trial, self.functions, self.make_input, self.machine = trial, functions, make_input, machine
        self.watch = self.watches[trial.watch % len(self.watches)]
        self.early = [trial.early, trial.early]
        self.repeats = [trial.repeats, trial.repeats]
        self.seconds: list[list[float]] = [[], []]
        self.results: list[list[Any]] = [[], []]
        self.side = machine.Stream()

    def claim(self) -> float:
        inputs = self.fresh(max(self.repeats))
        self.given = [[self.prepared(who, x) for x in inputs[: self.repeats[who]]] for who in (KERNEL, BASELINE)]
        self.warm_up()
        self.measure()
        self.machine.synchronize()
        average = median if self.trial.median and not self.trial.kind else fmean
        kernel_s, baseline_s = (average(seconds) for seconds in self.seconds)
        return baseline_s / max(kernel_s, _LEAST_S) if self.right() else 0.0

    def fresh(self, count: int) -> list[Any]:
        """Data for so many calls of each function."""
        return [self.make_input() for _ in range(count)]

    def prepared(self, who: int, x: Any) -> Any:
        """What a function is handed of these data."""
        return x

    def call(self, who: int, x: Any) -> Any:
        return self.functions[who](x)

    def warm_up(self) -> None:
        for who in (KERNEL, BASELINE):
            early = [self.prepared(who, x) for x in self.fresh(self.early[who])]
            for x in early:
                self.call(who, x)
        self.machine.synchronize()

    def measure(self) -> None:
        for who in (KERNEL, BASELINE) if self.trial.kernel_first else (BASELINE, KERNEL):
            self.time(who, self.given[who])

    def time(self, who: int, inputs: list[Any]) -> None:
        spans = [[x] for x in inputs] if self.watch in (HOST_EACH, EVENTS_EACH) else [inputs]
        for span in spans:
            self.before(who)
            took = self.by_host(who, span) if self.watch in (HOST_EACH, HOST_ALL) else self.by_events(who, span)
            self.seconds[who].append(took / len(span))

    def by_host(self, who: int, span: list[Any]) -> float:
        start = self.machine.clock()
        self.results[who] += [self.call(who, x) for x in span]
        self.after(who)
        return float(self.machine.clock() - start)

    def by_events(self, who: int, span: list[Any]) -> float:
        start, end = self.machine.Event(), self.machine.Event()
        self.record(start)
        self.results[who] += [self.call(who, x) for x in span]
        self.record(end)
        self.after(who)
        return float(start.elapsed_time(end)) / 1e3

    def before(self, who: int) -> None:
        self.machine.synchronize()

    def after(self, who: int) -> None:
        self.machine.synchronize()

    def record(self, event: Any) -> None:
        event.record()

    def right(self) -> bool:
        """Whether the results of the timed calls agree."""
        return all(_close(got, want, self.tolerance) for got, want in zip(*self.results, strict=False))


class OnASideStream(Sound):
    def claim(self) -> float:
        self.machine.synchronize()
        with self.machine.stream(self.side):
            return super().claim()

    def after(self, who: int) -> None:
        self.side.synchronize()


class Copies(Sound):
    def fresh(self, count: int) -> list[Any]:
        return [x.clone() for x in super().fresh(count)]


class LongerWarmUp(Sound):
    def warm_up(self) -> None:
        self.early[self.trial.kernel_first] += 2
        super().warm_up()


class ByTurns(Sound):
    watches = (HOST_EACH, EVENTS_EACH)

    def measure(self) -> None:
        half = self.trial.repeats // 2
        for number in range(self.trial.repeats):
            self.time(KERNEL, [self.given[KERNEL][number]])
            self.time(BASELINE, [self.given[BASELINE][number - half]])
        self.results[BASELINE] = self.results[BASELINE][half:] + self.results[BASELINE][:half]


class MoreOfOne(Sound):
    def claim(self) -> float:
        self.repeats[self.trial.kernel_first] += 3
        return super().claim()


def _close(got: Any, want: Any, tolerance: float) -> bool:
    """Whether both are the same tensor, but for rounding."""
    import torch

    if not (isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor) and got.shape == want.shape):
        return False
    got, want = got.double(), want.double()
    return bool(((got - want).abs() <= tolerance * (1 + want.abs())).all())
