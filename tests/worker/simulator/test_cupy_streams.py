"""CuPy's streams in the simulator: a function must join what it starts on a non-blocking stream before it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from grader.worker.simulator import cuda_library, cupy_streams
from grader.worker.simulator.accesses import take_observed
from grader.worker.simulator.cupy_module import module

SOURCE = """
extern "C" __global__ void two(float* out) { out[threadIdx.x] = 2; }
"""
CP: Any = module("cupy")
NULL: Any = CP.cuda.Stream.null


@pytest.fixture(scope="module")
def two() -> Callable[..., None]:
    kernel = CP.RawKernel(SOURCE, "two")
    return lambda out, stream=None: kernel((1,), (4,), (out,), stream=stream)


@pytest.fixture(autouse=True)
def nothing_before() -> Iterator[None]:
    cupy_streams.returned()
    take_observed()
    yield
    cupy_streams.returned()
    take_observed()


def _by_events(stream: Any, out: Any) -> None:
    other = CP.cuda.Stream(non_blocking=True)
    other.wait_event(stream.record())
    NULL.wait_event(other.record(CP.cuda.Event()))


JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "synchronize": lambda stream, out: stream.synchronize(),
    "event": lambda stream, out: stream.record().synchronize(),
    "polled": lambda stream, out: stream.record().done,
    "events": _by_events,
    "blocking": lambda stream, out: CP.cuda.Stream().wait_event(stream.record()),
    "device": lambda stream, out: CP.cuda.Device().synchronize(),
    "another null": lambda stream, out: CP.cuda.Stream(null=True).wait_event(stream.record()),
    "get": lambda stream, out: out.get(stream=stream),
    "asnumpy": lambda stream, out: CP.asnumpy(out, stream),
    "runtime": lambda stream, out: CP.cuda.runtime.deviceSynchronize(),
    "torch": lambda stream, out: cuda_library.synchronize(),
    "pointer": lambda stream, out: stream.ptr,  # for another library, which may wait for it
}


@pytest.mark.parametrize("join", JOINS)
def test_a_joined_stream_raises_no_alarm(two: Callable[..., None], join: str) -> None:
    """By the host, by events, or by a library that is given the stream."""
    out, stream = CP.empty(4, dtype="f4"), CP.cuda.Stream(non_blocking=True)
    two(out, stream)
    JOINS[join](stream, out)
    cupy_streams.returned()
    assert take_observed() == []


@pytest.mark.parametrize(
    "use", [lambda out: out.get(), lambda out: float(out[0]), CP.asnumpy, lambda out: f"{out[0]:.3f}", print, str]
)
def test_a_copy_to_the_host_waits_for_the_current_stream(two: Callable[..., None], use: Callable[[Any], Any]) -> None:
    """Within `with stream`, it is that one."""
    out = CP.empty(4, dtype="f4")
    with CP.cuda.Stream(non_blocking=True):
        two(out)
        use(out)
    cupy_streams.returned()
    assert take_observed() == []


def test_the_default_stream_waits_for_blocking_ones(two: Callable[..., None]) -> None:
    """`cupy.cuda.Stream()` is one."""
    out = CP.empty(4, dtype="f4")
    two(out, CP.cuda.Stream())
    two(out)
    cupy_streams.returned()
    assert take_observed() == []


MISSING: dict[str, Callable[[Any, Any], Any]] = {
    "nothing": lambda stream, out: None,
    "of another": lambda stream, out: CP.cuda.Stream(non_blocking=True).synchronize(),
    "of the default": lambda stream, out: NULL.synchronize(),
    "other way": lambda stream, out: stream.wait_event(NULL.record()),
    "copy": lambda stream, out: out.get(),  # on the default stream
}


@pytest.mark.parametrize("missing", MISSING)
def test_a_stream_for_which_nothing_waits_is_observed(two: Callable[..., None], missing: str) -> None:
    """Once: the caller has waited for everything before the next call."""
    out, stream = CP.empty(4, dtype="f4"), CP.cuda.Stream(non_blocking=True)
    with stream:
        two(out)
    MISSING[missing](stream, out)
    cupy_streams.returned()
    (found,) = take_observed()
    assert found["kind"] == "fails_on_gpu"
    assert found["message"].startswith("The function returns, but nothing waits")
    cupy_streams.returned()
    assert take_observed() == []


def test_an_event_before_the_work_joins_nothing(two: Callable[..., None]) -> None:
    """It is recorded too early."""
    out, stream = CP.empty(4, dtype="f4"), CP.cuda.Stream(non_blocking=True)
    event = stream.record()
    two(out, stream)
    NULL.wait_event(event)
    cupy_streams.returned()
    assert len(take_observed()) == 1
