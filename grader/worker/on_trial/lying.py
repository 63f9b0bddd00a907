"""Nine kinds of lies in three variants each: every class is the sound benchmark with one thing changed."""

from __future__ import annotations

from typing import Any

from grader.worker.on_trial.sound import (
    BASELINE,
    EVENTS_ALL,
    EVENTS_EACH,
    HOST_ALL,
    HOST_EACH,
    KERNEL,
    LOOSE,
    Sound,
)

__all__ = ["LYING"]


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


LYING: tuple[tuple[type[Sound], ...], ...] = (
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
