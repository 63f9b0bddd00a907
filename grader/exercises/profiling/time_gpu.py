"""Time a GPU call: wait for the GPU, warm up, repeat, and return milliseconds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Rules, Suspect
from grader.protocol.channel import from_bytes, to_bytes

_ROOM = 500  # bytes of JSON
# The first call takes the time of so many extra calls, so that a mean of a few calls is not a multiple of one call's.
_FIRST, _REAL_FIRST = 13.7, 64.5
_OTHER_REPEATS = (6, 7, 8, 12, 15, 16, 40)  # some are near the time of a first call
_REPEATS = (3, 5, 10, 20, 25, 30, 50, 100, 200, 500)
_WITH_FIRST = (1, 2, 3, 4, 5, 6, 8, 10)
_FLOATS = 1 << 27  # the largest tensor, 512 MiB

# Calls 1, 6, 11, … of one pretend kernel take this many times as long; so does the first call after a warm-up of five,
# ten or twenty calls. The minimum, the median and the mean stay within the budget.
_OUTLIER, _WITH_OUTLIERS = 1.15, "a kernel with outliers"
_MEAN = 1 + (_OUTLIER - 1) / 5
_LAUNCH_MS = 1e-3  # no launch is shorter
_FEWEST = 5  # calls in all: fewer hold at most a few measurements, besides the warm-up
_TRIES = 3  # other work on the machine may disturb a correct timer


def _case(name: str, measured: bool = False) -> Case:
    arrays = (Array("work", (_ROOM,), "uint8"), Array("out", (1,), role="out"), Array("calls", (1,), role="out"))
    return Case(name, arrays, measured=measured, tries=_TRIES)


def _times(entry: Any, work: Any, out: Any, calls: Any) -> None:
    from grader.protocol.channel import from_bytes
    from grader.worker.harnesses.timed_work import callable_of
    from grader.worker.outputs import CallOnly

    function = callable_of(from_bytes(work))
    made: list[None] = []

    def counted() -> None:
        made.append(None)
        function()

    milliseconds = entry(CallOnly(counted))
    calls.fill_(min(len(made), 5))
    try:
        out.fill_(float(milliseconds))
    except TypeError:
        kind = "None" if milliseconds is None else f"a {type(milliseconds).__name__}"
        raise TypeError(f"time_gpu returned {kind}, but must return the milliseconds as a number") from None


def _by_events(function: Any) -> float:
    import statistics

    import torch

    event: Any = torch.cuda.Event
    for _ in range(5):
        function()
    torch.cuda.synchronize()
    times: list[float] = []
    for _ in range(50):
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def _oracle(inputs: Any) -> Any:
    import torch

    work = from_bytes(inputs["work"])
    outliers = _MEAN if "outlier" in work else 1  # the mean: other work on the machine only lengthens times
    milliseconds = outliers * sum(megabytes / gbps for megabytes, gbps in work["virtual"])
    return torch.tensor([milliseconds], dtype=torch.float64), torch.tensor([_FEWEST], dtype=torch.float64)


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    return {"work": to_bytes(_KINDS[case.name](random.SystemRandom(), machine), _ROOM)}


def _pretend(least_ms: float, most_ms: float, launches: int = 1, **more: float) -> Callable[[random.Random, Any], Any]:
    def describe(chance: random.Random, machine: Any) -> Any:
        rates = [round(chance.uniform(20, 60), 2) for _ in range(launches)]
        sizes = [round(rate * chance.uniform(least_ms, most_ms) / launches, 2) for rate in rates]
        total_ms = sum(size / rate for size, rate in zip(sizes, rates, strict=True))
        first_ms = round(_FIRST * total_ms * chance.uniform(0.99, 1.01), 2)
        return {"first_ms": first_ms, "virtual": list(map(list, zip(sizes, rates, strict=True)))} | more

    return describe


def _memory(operation: str, arrays: int, most: int = _FLOATS) -> Callable[..., Any]:
    """Vectors of float32, and as many launches as take some milliseconds: 5 % must exceed the time of a launch."""

    def describe(chance: random.Random, machine: Any) -> Any:
        size = int(most * chance.uniform(0.6, 1))
        wanted_ms = chance.uniform(1.5, 4.5)
        one_ms = 4 * arrays * size / (machine.copy_gbps * 1e6)
        return _real(operation, size, max(1, round(wanted_ms / one_ms)), wanted_ms)

    return describe


def _product(chance: random.Random, machine: Any) -> Any:
    size = 128 * chance.randrange(24, 33)
    wanted_ms = chance.uniform(2, 5)
    one_ms = 2 * size**3 / (machine.peak_tflops * 1e9)
    return _real("multiply", size, max(1, round(wanted_ms / one_ms)), wanted_ms)


def _real(operation: str, size: int, launches: int, wanted_ms: float) -> Any:
    return {"first_ms": round(_REAL_FIRST * wanted_ms, 2), "operation": operation, "size": size, "launches": launches}


_KINDS: dict[str, Callable[[random.Random, Any], Any]] = {
    "a sum of many numbers": _memory("sum", 1),
    "an addition of long vectors": _memory("add", 3, _FLOATS // 2),
    "a product of matrices": _product,
    "many small kernels in a row": _memory("negate", 2, _FLOATS // 8),
    "a short kernel": _pretend(9, 12),
    _WITH_OUTLIERS: _pretend(18, 25, outlier=_OUTLIER),
    "five kernels in a row": _pretend(12, 18, launches=5),
}


def _times_expected(factor: float) -> Callable[[Any], Any]:
    return lambda a: a["expected"] * factor


def _with_first(repeats: int) -> Callable[[Any], Any]:
    """The mean of this many calls, including the slow first one."""
    return lambda a: a["expected"] + from_bytes(a["work"])["first_ms"] / repeats


def _an_outlier(a: Any) -> Any:
    return a["expected"] * _OUTLIER / _MEAN if "outlier" in from_bytes(a["work"]) else None


def _negative(a: Any) -> Any:
    got = a.get("got", -a["expected"])
    return got if float(got) < 0 else None


def _next_to_nothing(a: Any) -> Any:
    """A time shorter than any launch, in milliseconds."""
    got = a.get("got", a["expected"] * 0 + 1e-4)
    return got if float(got) < _LAUNCH_MS and float(a["expected"]) != _FEWEST else None


def _few_calls(a: Any) -> Any:
    """The output, if it is the number of calls: only that is a whole number that is expected to be `_FEWEST`."""
    counts = float(a["expected"]) == _FEWEST
    return a.get("got", a["expected"] - 1) if counts else None


def _between(sentence: str, least: float, most: float) -> Suspect:
    """A suspect for every time from `least` to `most` times the expected one."""
    return Suspect(sentence, _times_expected((least + most) / 2), relative=(most - least) / (most + least))


_EXCHANGED = "The time is negative, so the two clock readings are exchanged: write `start.elapsed_time(end)`."
_NOTHING = (
    "Hardly any time passed, so `function` was not called between the two clock readings. A call has parentheses: "
    "`function()`."
)
_NANOSECONDS = (
    "This is the time in nanoseconds, but the exercise requires milliseconds: `time.perf_counter_ns()` counts "
    "nanoseconds, so divide by 1e6."
)
_SECONDS = (
    "This is the time in seconds, but the exercise requires milliseconds: `time.perf_counter()` counts seconds, "
    "`elapsed_time` milliseconds."
)
_MICROSECONDS = (
    "This is a thousand times too long, as if in microseconds, but the exercise requires milliseconds. "
    "`time.perf_counter()` counts seconds, `elapsed_time` already milliseconds."
)
_FIRST_CALL = (
    "This time includes the first call, which is slow: call the function a few times before you measure, and wait "
    "until the GPU has finished."
)
_TOTAL = "This is the total time of several calls: divide by their number."
_SINGLE_SHOT = (
    "One single shot is not a measurement: `function` was called fewer than five times in all. Warm up, time ten calls "
    "or more, and take the median or divide by their number."
)
_SINGLE_TIME = (
    "This is the time of an outlier: one call in five takes 15 % longer here. A single call or the maximum may be one. "
    "Take the median of ten calls or more, or divide their total by their number."
)
_TOO_SHORT = (
    "The GPU needs longer than that: the clock was read while the GPU was still working. A launch returns "
    "immediately, so call `torch.cuda.synchronize()` before you read the clock."
)
_TOO_LONG = (
    "One call takes less than that, so this time includes something else. Is it the first call, or warm-up calls "
    "that were still running when the clock started? If you time each call with a wall clock, other work on this "
    "machine may also disturb it: check again, or use events."
)

TIME_GPU = Exercise(
    id="time_gpu",
    title="Time a GPU call",
    chapter="01_profiling",
    notebook="01_time_a_gpu_call",
    entry="time_gpu",
    parameters=("function",),
    backend="torch",
    cases=tuple(_case(name, measured=True) for name in list(_KINDS)[:4]),
    simulator_cases=tuple(_case(name) for name in list(_KINDS)[4:]),
    timed_cases=(),
    plot_cases=(),
    oracle=_oracle,
    budget=Budget(absolute=0.0, relative=0.05),
    bytes_moved=lambda case: _ROOM,
    operations=lambda case: 1,
    correctness_points=4,
    rules=Rules(handed=True),
    harness=_times,
    draw=_draw,
    measure=_by_events,
    answers=("milliseconds",),
    suspects=(
        Suspect(_SINGLE_SHOT, _few_calls),
        Suspect(_EXCHANGED, _negative),
        Suspect(_NOTHING, _next_to_nothing),
        Suspect(_NANOSECONDS, _times_expected(1e6), relative=0.06),
        Suspect(_SECONDS, _times_expected(1e-3), relative=0.06),
        Suspect(_MICROSECONDS, _times_expected(1e3), relative=0.06),
        *(Suspect(_TOTAL, _times_expected(repeats), relative=0.05) for repeats in _REPEATS),
        *(Suspect(_TOTAL, _times_expected(repeats), relative=0.005) for repeats in _OTHER_REPEATS),
        *(Suspect(_FIRST_CALL, _with_first(repeats), relative=0.12) for repeats in _WITH_FIRST),
        Suspect(
            _SINGLE_TIME, _an_outlier, relative=0.04, spares=tuple(name for name in _KINDS if name != _WITH_OUTLIERS)
        ),
        _between(_TOO_SHORT, 0, 0.95),
        _between(_TOO_LONG, 1.05, 5000),
    ),
    hints=(
        "A launch returns immediately: `torch.cuda.synchronize()` waits until the GPU has finished.",
        "The first call does extra work that later calls reuse. Call the function a few times, and wait, before you "
        "measure.",
        "Both are sound: two events around the call with `start.elapsed_time(end)`, or a wall clock around many calls.",
        "One measurement is not enough: use the median of ten or more. `statistics.median` takes a list.",
    ),
)
