"""A machine for benchmarks, with a clock, streams and events: this machine, or a pretend GPU with simulated time.

Both have the same methods, named as in `torch.cuda`, so the same benchmark runs on either.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

# The host's time per call in seconds, about as on a real machine.
_LAUNCH_S = 5e-6
_WAIT_S = 2e-6
_CLOCK_S = 1e-7
_CALIBRATION_CYCLES = 10_000_000


class PretendGpu:
    """A GPU without hardware. Its time is a number that grows when `run` queues work and when the host waits.

    The host continues at once after `run`, as after any launch. Each stream is an independent queue. Nothing is
    computed, and the same calls always take the same time.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self._streams: list[PretendStream] = []
        self._current = self.Stream()

    def clock(self) -> float:
        """Return the host's time, in seconds."""
        self.now_s += _CLOCK_S
        return self.now_s

    def run(self, seconds: float) -> None:
        """Queue a kernel that takes so long on the current stream, and return at once."""
        self.now_s += _LAUNCH_S
        self._current.done_s = max(self.now_s, self._current.done_s) + seconds

    def synchronize(self) -> None:
        """Wait for all streams."""
        self.wait_until(max(stream.done_s for stream in self._streams))

    def wait_until(self, moment_s: float) -> None:
        """Let the host wait; if the moment has passed, only the call takes time."""
        self.now_s = max(self.now_s + _WAIT_S, moment_s)

    def current_stream(self) -> PretendStream:
        return self._current

    @contextlib.contextmanager
    def stream(self, stream: PretendStream) -> Iterator[None]:
        """Make `stream` the current one within the `with` statement."""
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def Stream(self) -> PretendStream:
        self._streams.append(PretendStream(self))
        return self._streams[-1]

    def Event(self) -> PretendEvent:
        return PretendEvent(self)


class PretendStream:
    """A queue; `done_s` is when its last kernel ends."""

    def __init__(self, gpu: PretendGpu) -> None:
        self._gpu = gpu
        self.done_s = 0.0

    def synchronize(self) -> None:
        """Wait for the work of this stream only."""
        self._gpu.wait_until(self.done_s)

    def wait_stream(self, other: PretendStream) -> None:
        """Let later work of this stream wait for the other stream's current work."""
        self.done_s = max(self.done_s, other.done_s)


class PretendEvent:
    """A mark in a stream, with the time at which the stream reaches it."""

    def __init__(self, gpu: PretendGpu) -> None:
        self._gpu = gpu
        self._at_s: float | None = None

    def record(self, stream: PretendStream | None = None) -> None:
        """Put the mark after the work in the stream, by default the current one."""
        self._at_s = max(self._gpu.clock(), (stream or self._gpu.current_stream()).done_s)

    def synchronize(self) -> None:
        """Wait until the stream has reached the mark."""
        self._gpu.wait_until(self._at_s or 0.0)

    def elapsed_time(self, end: PretendEvent) -> float:
        """Return the milliseconds between two marks; raise `RuntimeError` if one is not recorded or not reached."""
        if self._at_s is None or end._at_s is None:
            raise RuntimeError("Both events must be recorded before the time between them is read.")
        if max(self._at_s, end._at_s) > self._gpu.now_s:
            raise RuntimeError("The device has not reached both events yet: synchronize first.")
        return (end._at_s - self._at_s) * 1e3


class ThisMachine:
    """This machine's GPU, or its CPU, which has no streams and finishes its work before a call returns."""

    def __init__(self, device: str | None = None) -> None:
        """`device` is "cuda" or "cpu", by default the GPU if there is one."""
        import torch

        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._cuda: Any = torch.cuda if self.device == "cuda" else None
        self._cycles_per_second = self._calibrated() if self._cuda else 0.0

    def clock(self) -> float:
        return time.perf_counter()

    def run(self, seconds: float) -> None:
        """Queue a kernel that takes so long on the GPU's current stream, or keep the CPU busy so long."""
        if self._cuda:
            self._cuda._sleep(int(seconds * self._cycles_per_second))
            return
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    def synchronize(self) -> None:
        if self._cuda:
            self._cuda.synchronize()

    def current_stream(self) -> Any:
        return self._cuda.current_stream() if self._cuda else _HostStream()

    def stream(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        return self._cuda.stream(stream) if self._cuda else contextlib.nullcontext()

    def Stream(self) -> Any:
        return self._cuda.Stream() if self._cuda else _HostStream()

    def Event(self) -> Any:
        return self._cuda.Event(enable_timing=True) if self._cuda else _HostEvent()

    def _calibrated(self) -> float:
        """Return the cycles per second of `torch.cuda._sleep`, after the clock of an idle GPU has risen."""
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
