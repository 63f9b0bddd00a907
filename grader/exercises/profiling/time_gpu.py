"""Time a GPU call: wait for the GPU, warm up, repeat, and say milliseconds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Rules, Suspect

_ROOM = 500  # bytes of JSON
# The first call takes so many calls' time on top. The mean of a few calls with it is then no multiple of a call's time.
_FIRST, _REAL_FIRST = 13.7, 60
_REPEATS = (3, 5, 10, 20, 25, 30, 50, 100, 200, 500)
_WITH_FIRST = (1, 2, 3, 4, 5, 6, 8, 10)
_FLOATS = 1 << 27  # at most in a tensor, 512 MiB


_TRIES = 3  # a busy machine disturbs a timer that is right


def _case(name: str, measured: bool = False) -> Case:
    arrays = (Array("work", (_ROOM,), "uint8"), Array("out", (1,), role="out"))
    return Case(name, arrays, measured=measured, tries=_TRIES)


def _times(entry: Any, work: Any, out: Any) -> None:
    from grader.protocol.channel import from_bytes
    from grader.worker.harnesses.timed_work import callable_of

    milliseconds = entry(callable_of(from_bytes(work)))
    try:
        out.fill_(float(milliseconds))
    except TypeError:
        kind = "None" if milliseconds is None else f"a {type(milliseconds).__name__}"
        raise TypeError(f"time_gpu returned {kind}; it must return a number, the milliseconds") from None


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


def _description(work: Any) -> Any:
    from grader.protocol.channel import from_bytes

    return from_bytes(work)


def _oracle(inputs: Any) -> Any:
    import torch

    launches = _description(inputs["work"])["virtual"]
    return torch.tensor([sum(megabytes / gbps for megabytes, gbps in launches)], dtype=torch.float64)


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    from grader.protocol.channel import to_bytes

    return {"work": to_bytes(_KINDS[case.name](random.SystemRandom(), machine), _ROOM)}


def _pretend(least_ms: float, most_ms: float, launches: int = 1) -> Callable[[random.Random, Any], Any]:
    def describe(chance: random.Random, machine: Any) -> Any:
        rates = [round(chance.uniform(20, 60), 2) for _ in range(launches)]
        sizes = [round(rate * chance.uniform(least_ms, most_ms) / launches, 2) for rate in rates]
        total_ms = sum(size / rate for size, rate in zip(sizes, rates, strict=True))
        first_ms = round(_FIRST * total_ms * chance.uniform(0.99, 1.01), 2)
        return {"first_ms": first_ms, "virtual": list(map(list, zip(sizes, rates, strict=True)))}

    return describe


def _memory(operation: str, arrays: int, most: int = _FLOATS, least_ms: float = 1.5) -> Callable[..., Any]:
    """Vectors of float32, so many times over that a call takes some milliseconds: 5 % must be more than a launch."""

    def describe(chance: random.Random, machine: Any) -> Any:
        size = int(most * chance.uniform(0.6, 1))
        wanted_ms = chance.uniform(least_ms, 3 * least_ms)
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
    "a long kernel": _pretend(18, 25),
    "five kernels in a row": _pretend(12, 18, launches=5),
}


def _times_expected(factor: float) -> Callable[[Any], Any]:
    return lambda a: a["expected"] * factor


def _with_first(repeats: int) -> Callable[[Any], Any]:
    """The mean of so many calls, the slow first one among them."""
    return lambda a: a["expected"] + _description(a["work"])["first_ms"] / repeats


def _between(sentence: str, least: float, most: float) -> Suspect:
    """A suspect for every time from `least` to `most` times what is expected."""
    return Suspect(sentence, _times_expected((least + most) / 2), relative=(most - least) / (most + least))


_SECONDS = (
    "This is the time in seconds, and milliseconds are asked for: `time.perf_counter()` counts seconds, `elapsed_time` "
    "milliseconds."
)
_MICROSECONDS = (
    "This is a thousand times too long, as if it were microseconds: milliseconds are asked for. `time.perf_counter()` "
    "counts seconds, `elapsed_time` milliseconds already."
)
_FIRST_CALL = (
    "The first call is in this time, and it is slow: call the function a few times before you measure, and wait until "
    "the GPU is done with that."
)
_TOTAL = "This is the time of several calls together: divide by their number."
_TOO_SHORT = (
    "The GPU needs longer than that: the clock was read while the GPU was still at work. A launch returns at once, so "
    "wait with `torch.cuda.synchronize()` before you read the clock."
)
_TOO_LONG = (
    "One call takes less than that: something else is in this time as well. The first call, or warm-up calls for which "
    "you did not wait before the clock was started? Or, with a wall clock around each call alone, whatever else this "
    "machine does? Then check again, or use events."
)

TIME_GPU = Exercise(
    id="time_gpu",
    title="Time a GPU call",
    chapter="01_profiling",
    notebook="01_time_a_gpu_call",
    entry="time_gpu",
    parameters=("function",),
    backend="torch",
    cases=(
        _case("a sum of many numbers", measured=True),
        _case("an addition of long vectors", measured=True),
        _case("a product of matrices", measured=True),
        _case("many small kernels in a row", measured=True),
    ),
    simulator_cases=(
        _case("a short kernel"),
        _case("a long kernel"),
        _case("five kernels in a row"),
    ),
    timed_cases=(),
    plot_cases=(),
    oracle=_oracle,
    budget=Budget(absolute=0.0, relative=0.05),
    bytes_moved=lambda case: _ROOM,
    operations=lambda case: 1,
    correctness_points=4,
    rules=Rules(handed=("function",)),
    harness=_times,
    draw=_draw,
    measure=_by_events,
    answers=("milliseconds",),
    suspects=(
        Suspect(_SECONDS, _times_expected(1e-3), relative=0.06),
        Suspect(_MICROSECONDS, _times_expected(1e3), relative=0.06),
        *(Suspect(_TOTAL, _times_expected(repeats), relative=0.03) for repeats in _REPEATS),
        *(Suspect(_FIRST_CALL, _with_first(repeats), relative=0.12) for repeats in _WITH_FIRST),
        _between(_TOO_SHORT, 0, 0.95),
        _between(_TOO_LONG, 1.05, 5000),
    ),
    hints=(
        "A launch returns at once: `torch.cuda.synchronize()` waits until the GPU is done.",
        "The first call builds what later calls use. Call the function a few times, and wait, before you measure.",
        "Two events around the call and `start.elapsed_time(end)`, or the wall clock around many: both are sound.",
        "One time is not enough: take the median of ten or more. `statistics.median` takes a list.",
    ),
)
