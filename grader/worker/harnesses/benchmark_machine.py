"""A machine as a benchmark sees it: clock, streams, events. This machine, or a pretend GPU whose time is made up.

Both have the same methods, named as in `torch.cuda`: what is written for one runs on the other.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

# What a call costs the host, in seconds; about as on a real machine.
_LAUNCH_S = 5e-6
_WAIT_S = 2e-6
_CLOCK_S = 1e-7
_CALIBRATION_CYCLES = 10_000_000


class PretendGpu:
    """A GPU without hardware. Its time is a number: it passes where `run` queues work and where the host waits.

    The host goes on at once after `run`, as after any launch. Each stream is a queue of its own, which waits for no
    other. Nothing is computed; the same calls always take the same time.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self._streams: list[PretendStream] = []
        self._current = self.Stream()

    def clock(self) -> float:
        """The host's clock, in seconds."""
        self.now_s += _CLOCK_S
        return self.now_s

    def run(self, seconds: float) -> None:
        """Queues a kernel that takes so long on the current stream, and returns at once."""
        self.now_s += _LAUNCH_S
        self._current.done_s = max(self.now_s, self._current.done_s) + seconds

    def synchronize(self) -> None:
        """Waits for all streams."""
        self.wait_until(max(stream.done_s for stream in self._streams))

    def wait_until(self, moment_s: float) -> None:
        """Has the host wait; a moment that is past costs it the call alone."""
        self.now_s = max(self.now_s + _WAIT_S, moment_s)

    def current_stream(self) -> PretendStream:
        """The stream that `run` queues on."""
        return self._current

    @contextlib.contextmanager
    def stream(self, stream: PretendStream) -> Iterator[None]:
        """Within it, `stream` is the current one."""
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def Stream(self) -> PretendStream:
        """A stream of its own."""
        self._streams.append(PretendStream(self))
        return self._streams[-1]

    def Event(self) -> PretendEvent:
        """A mark that can be put into a stream."""
        return PretendEvent(self)


class PretendStream:
    """A queue: `done_s` is when the last of its work ends."""

    def __init__(self, gpu: PretendGpu) -> None:
        self._gpu = gpu
        self.done_s = 0.0

    def synchronize(self) -> None:
        """Waits for the work of this stream alone."""
        self._gpu.wait_until(self.done_s)

    def wait_stream(self, other: PretendStream) -> None:
        """Has later work of this stream wait for what the other has now."""
        self.done_s = max(self.done_s, other.done_s)


class PretendEvent:
    """A mark in a stream: the moment at which the stream gets there."""

    def __init__(self, gpu: PretendGpu) -> None:
        self._gpu = gpu
        self._at_s: float | None = None

    def record(self, stream: PretendStream | None = None) -> None:
        """Puts the mark behind the work that is queued in the stream, by default the current one."""
        self._at_s = max(self._gpu.clock(), (stream or self._gpu.current_stream()).done_s)

    def synchronize(self) -> None:
        """Waits until the stream has got there."""
        self._gpu.wait_until(self._at_s or 0.0)

    def elapsed_time(self, end: PretendEvent) -> float:
        """Milliseconds from this mark to the other.

        Raises:
            RuntimeError: one was never recorded, or not reached yet.
        """
        if self._at_s is None or end._at_s is None:
            raise RuntimeError("Both events must be recorded before the time between them is asked for.")
        if max(self._at_s, end._at_s) > self._gpu.now_s:
            raise RuntimeError("The device has not reached both events yet: synchronize first.")
        return (end._at_s - self._at_s) * 1e3


class ThisMachine:
    """The GPU of this machine, or its CPU: a CPU has done its work when a call returns, and has no streams."""

    def __init__(self, device: str | None = None) -> None:
        """`device` is "cuda" or "cpu"; by default the GPU where there is one."""
        import torch

        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._cuda: Any = torch.cuda if self.device == "cuda" else None
        self._cycles_a_second = self._calibrated() if self._cuda else 0.0

    def clock(self) -> float:
        """The host's clock, in seconds."""
        return time.perf_counter()

    def run(self, seconds: float) -> None:
        """A kernel that takes so long: on a GPU queued on the current stream, on a CPU done when the call returns."""
        if self._cuda:
            self._cuda._sleep(int(seconds * self._cycles_a_second))
            return
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    def synchronize(self) -> None:
        """Waits for all streams."""
        if self._cuda:
            self._cuda.synchronize()

    def current_stream(self) -> Any:
        """The stream that work is queued on."""
        return self._cuda.current_stream() if self._cuda else _HostStream()

    def stream(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        """Within it, `stream` is the current one."""
        return self._cuda.stream(stream) if self._cuda else contextlib.nullcontext()

    def Stream(self) -> Any:
        """A stream of its own."""
        return self._cuda.Stream() if self._cuda else _HostStream()

    def Event(self) -> Any:
        """An event that takes the time."""
        return self._cuda.Event(enable_timing=True) if self._cuda else _HostEvent()

    def _calibrated(self) -> float:
        """The cycles in a second of `torch.cuda._sleep`; the clock of an idle GPU has to rise first."""
        for _ in range(3):
            start, end = self.Event(), self.Event()
            start.record()
            self._cuda._sleep(_CALIBRATION_CYCLES)
            end.record()
            end.synchronize()
        return float(_CALIBRATION_CYCLES / (start.elapsed_time(end) / 1e3))


class _HostStream:
    def synchronize(self) -> None:
        pass

    def wait_stream(self, other: Any) -> None:
        pass


class _HostEvent:
    def __init__(self) -> None:
        self._at_s = 0.0

    def record(self, stream: Any = None) -> None:
        self._at_s = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: _HostEvent) -> float:
        return (end._at_s - self._at_s) * 1e3
