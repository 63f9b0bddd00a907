"""The benchmarks of the exercise `audit`: sound ones, and nine kinds of lying ones in three variants each.

A trial is a list of numbers, and its benchmark can only be called, so that no name gives a lie away. This does not
stop a submission that reads these files: code in a process can find everything that the process knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

from grader.worker.outputs import CallOnly

KERNEL, BASELINE = 0, 1
HOST_EACH, HOST_ALL, EVENTS_EACH, EVENTS_ALL = range(4)
STRICT, LOOSE = 1e-5, 5e-2
_LEAST_S = 1e-9


class Trial(NamedTuple):
    """One benchmark: `kind` is 0 for a sound one, and `way` is the variant of the lie or the style."""

    kind: int
    way: int
    repeats: int  # at least 6, even
    early: int  # calls before the timed ones
    watch: int  # one of four stopwatches
    kernel_first: int
    median: int  # instead of the mean; only for sound ones that time each call


class Sound:
    """One call of a sound benchmark. Every other style and every lie is this class with one change."""

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
        """Make data for so many calls of each function."""
        return [self.make_input() for _ in range(count)]

    def prepared(self, who: int, x: Any) -> Any:
        """Return what a function gets of these data."""
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
        """Compare the results of the timed calls."""
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
    import torch

    if not (isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor) and got.shape == want.shape):
        return False
    got, want = got.double(), want.double()
    return bool(((got - want).abs() <= tolerance * (1 + want.abs())).all())


# The lies.


class KernelNotAwaited(Sound):
    watches = (HOST_ALL,)

    def after(self, who: int) -> None:
        if who == BASELINE:
            self.machine.synchronize()


class AwaitedBeforeOnly(Sound):
    watches = (HOST_EACH, HOST_ALL)

    def after(self, who: int) -> None:
        pass


class FirstAwaited(Sound):
    watches = (HOST_ALL,)

    def before(self, who: int) -> None:
        super().before(who)
        self.mark: Any = None

    def call(self, who: int, x: Any) -> Any:
        found = super().call(who, x)
        if who == KERNEL and getattr(self, "mark", self) is None:
            self.mark = self.machine.Event()
            self.mark.record()
        return found

    def after(self, who: int) -> None:
        if who == KERNEL:
            self.mark.synchronize()
        else:
            super().after(who)


class OneInput(Sound):
    kept = 1

    def fresh(self, count: int) -> list[Any]:
        some = super().fresh(min(count, self.kept))
        return [some[number % self.kept] for number in range(count)]


class TwoInputs(OneInput):
    kept = 2


class InPairs(Sound):
    watches = (HOST_EACH, EVENTS_EACH)

    def measure(self) -> None:
        for for_kernel, for_baseline in zip(*self.given, strict=True):
            self.time(BASELINE, [for_baseline])
            self.time(KERNEL, [for_kernel])


class LookedUp(Sound):
    step = 1

    def measure(self) -> None:
        self.known = {x.data_ptr(): self.functions[KERNEL](x) for x in self.given[KERNEL][:: self.step]}
        super().measure()

    def call(self, who: int, x: Any) -> Any:
        if who == KERNEL and x.data_ptr() in getattr(self, "known", ()):
            return self.known[x.data_ptr()]
        return super().call(who, x)


class EverySecondLookedUp(LookedUp):
    step = 2


class FirstForAll(Sound):
    kept: Any = None

    def measure(self) -> None:
        self.timed = True
        super().measure()

    def call(self, who: int, x: Any) -> Any:
        if who == BASELINE or not hasattr(self, "timed"):
            return super().call(who, x)
        self.kept = super().call(who, x) if self.kept is None else self.kept
        return self.kept

    def right(self) -> bool:
        self.results = [results[:1] for results in self.results]
        return super().right()


class FirstHalf(Sound):
    def prepared(self, who: int, x: Any) -> Any:
        return x[: x.shape[0] // 2] if who == KERNEL else x

    def right(self) -> bool:
        self.results[BASELINE] = [self.functions[BASELINE](x) for x in self.given[KERNEL]]
        return super().right()


class MostOfIt(FirstHalf):
    def prepared(self, who: int, x: Any) -> Any:
        return x[x.shape[0] // 4 :] if who == KERNEL else x


class WholeAtFirst(FirstHalf):
    def prepared(self, who: int, x: Any) -> Any:
        return x[::2] if who == KERNEL else x

    def warm_up(self) -> None:
        for who in (KERNEL, BASELINE):
            for x in self.fresh(self.early[who]):
                self.call(who, x)
        self.machine.synchronize()


class KernelElsewhere(Sound):
    watches = (HOST_EACH, HOST_ALL)

    def call(self, who: int, x: Any) -> Any:
        if who == BASELINE:
            return super().call(who, x)
        with self.machine.stream(self.side):
            return super().call(who, x)

    def after(self, who: int) -> None:
        self.machine.current_stream().synchronize()


class KernelElsewhereByEvents(KernelElsewhere):
    watches = (EVENTS_EACH, EVENTS_ALL)

    def after(self, who: int) -> None:
        self.machine.synchronize()


class EventsElsewhere(Sound):
    watches = (EVENTS_EACH, EVENTS_ALL)

    def record(self, event: Any) -> None:
        event.record(self.side)


class Narrow(Sound):
    tolerance = LOOSE

    def prepared(self, who: int, x: Any) -> Any:
        import torch

        return x.to(torch.bfloat16) if who == KERNEL else x


class NarrowAndBack(Narrow):
    def prepared(self, who: int, x: Any) -> Any:
        return super().prepared(who, x).to(x.dtype)


class NarrowByItself(Sound):
    tolerance = LOOSE

    def call(self, who: int, x: Any) -> Any:
        import torch

        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=who == KERNEL):
            return super().call(who, x)


class Zeros(Sound):
    def fresh(self, count: int) -> list[Any]:
        return [x * 0 for x in super().fresh(count)]


class OneValue(Sound):
    def fresh(self, count: int) -> list[Any]:
        return [x[:1].expand_as(x).contiguous() for x in super().fresh(count)]


class MostlyOneValue(Sound):
    def fresh(self, count: int) -> list[Any]:
        import torch

        some = ((x[: x.shape[0] // 8 + 1], x) for x in super().fresh(count))
        return [torch.cat([kept, kept[-1:].expand_as(x[len(kept) :])]) for kept, x in some]


class Twice(Sound):
    def call(self, who: int, x: Any) -> Any:
        found = super().call(who, x)
        return found if who == KERNEL else super().call(who, x)


class WithGaps(Sound):
    def prepared(self, who: int, x: Any) -> Any:
        import torch

        return x if who == KERNEL else torch.stack([x, x], dim=-1)[..., 0]


class Cold(Sound):
    def warm_up(self) -> None:
        self.early[BASELINE] = 0
        super().warm_up()


class Unread(Sound):
    def right(self) -> bool:
        return True


class ReadAtFirst(Sound):
    def warm_up(self) -> None:
        early = self.fresh(2)
        self.first = [[self.call(who, x) for x in early][:1] for who in (KERNEL, BASELINE)]
        super().warm_up()

    def right(self) -> bool:
        self.results = self.first
        return super().right()


class OnlyShapes(Sound):
    def right(self) -> bool:
        return all(got.shape == want.shape for got, want in zip(*self.results, strict=False))


_LYING: tuple[tuple[type[Sound], ...], ...] = (
    (KernelNotAwaited, AwaitedBeforeOnly, FirstAwaited),
    (OneInput, TwoInputs, InPairs),
    (LookedUp, EverySecondLookedUp, FirstForAll),
    (FirstHalf, MostOfIt, WholeAtFirst),
    (KernelElsewhere, KernelElsewhereByEvents, EventsElsewhere),
    (Narrow, NarrowAndBack, NarrowByItself),
    (Zeros, OneValue, MostlyOneValue),
    (Twice, WithGaps, Cold),
    (Unread, ReadAtFirst, OnlyShapes),
)


_SOUND = (Sound, Sound, Sound, Sound, OnASideStream, Copies, LongerWarmUp, ByTurns, MoreOfOne)
_WAYS: tuple[tuple[type[Sound], ...], ...] = (_SOUND, *_LYING)
LIES = len(_LYING)  # numbered from 1, in the order of the notebook; 0 is a sound one
VARIANTS = len(_LYING[0])  # per lie
STYLES = len(_SOUND)  # of sound ones


def bring(numbers: Sequence[int]) -> Callable[..., float]:
    """Return a benchmark `(kernel, baseline, make_input, machine) -> claimed speed-up`, 0 if the results differ.

    `kernel` and `baseline` take a tensor and return one, `make_input()` makes a tensor, and `machine` comes from
    `grader.worker.harnesses.benchmark_machine`.
    """
    trial = Trial(*numbers)

    def benchmark(kernel: Any, baseline: Any, make_input: Callable[[], Any], machine: Any) -> float:
        return _WAYS[trial.kind][trial.way](trial, (kernel, baseline), make_input, machine).claim()

    return CallOnly(benchmark)
