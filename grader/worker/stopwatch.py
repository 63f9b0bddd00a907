"""A worker's own timing of a round: CUDA events, the wait for the end, and the flag as the GPU sees it.

Without a head start, the host's time between the flag's rise and the first record counts on the judge's clock but not
between the events. Recording through torch took 13 to 130 µs on an H200, because its code had left the caches. The
driver's own call takes 11 to 17 µs, or about 4 µs if it was just made a few times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.protocol.flag import Flag

_REHEARSALS = 10
_MAPPED = 2  # CU_MEMHOSTREGISTER_DEVICEMAP
_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
_IN_ORDER = 0  # CU_STREAM_WRITE_VALUE_DEFAULT: earlier writes become visible first
_NOT_SUPPORTED = ("CUDA_ERROR_NOT_PERMITTED", "CUDA_ERROR_NOT_SUPPORTED")


class GpuFlag:
    """Let torch's current stream wait for the flag and answer it.

    Calls after the wait are queued before the clock starts. So Python's way to the first launch is not timed; it varies
    by 0.1 ms on a busy host. The delay until the host notices the end of the last kernel is not timed either. A
    submission could avoid both.

    If the GPU or the driver does not support this, nothing is ever queued and the host waits and answers. Any other
    error of the driver is a `RuntimeError`, because a worker without the flag would be timed differently. With the
    practice clock the flag is not `needed`, because any error may be why that clock was chosen.
    """

    def __init__(self, flag: Flag, needed: bool = True) -> None:
        from cuda.bindings import driver

        self._driver: Any = driver
        self._possible, self._needed = True, needed
        self._ask("cuMemHostRegister", flag.address, Flag.BYTES, _MAPPED)
        self._page = int(self._ask("cuMemHostGetDevicePointer", flag.address, 0) or 0)

    def wait_raised(self, number: int) -> bool:
        """Let the stream wait until the flag is raised for this round; return False if it cannot."""
        self._ask("cuStreamWaitValue64", _current(), self._page, number, _AT_LEAST)
        return self._possible

    def answer(self, number: int) -> None:
        """Let the stream answer for this round after its earlier work. This fails if that work has failed."""
        self._ask("cuStreamWriteValue64", _current(), self._page + Flag.ANSWERED_AT, number, _IN_ORDER)

    def _ask(self, name: str, *arguments: Any) -> Any:
        """Return the result of a driver function, or None once one was not supported."""
        if not self._possible:
            return None
        try:
            error, *found = getattr(self._driver, name)(*arguments)
        except (AttributeError, RuntimeError):  # the bindings or the driver are older than the function
            self._possible = False
            return None
        if int(error):
            self._possible = False
            if self._needed and error.name not in _NOT_SUPPORTED:
                raise RuntimeError(f"{name}: the CUDA driver answered {error.name}")
            return None
        return found[0] if found else None


def _current() -> int:
    import torch

    return int(torch.cuda.current_stream().cuda_stream)


class CudaWatch:
    """Two events on the current stream. All slow preparation is done before the flag rises."""

    def __init__(self) -> None:
        import torch
        from cuda.bindings import driver

        self._torch, self._driver = torch, driver
        make: Callable[..., Any] = torch.cuda.Event
        self._events = make(enable_timing=True), make(enable_timing=True)
        for event in self._events:
            event.record()  # torch creates the event here
        self._start, self._stop = (driver.CUevent(event.cuda_event) for event in self._events)
        self._stream = self._current()
        for _ in range(_REHEARSALS):
            self.start()
            self.stop()
            self.wait()

    def start(self) -> None:
        self._started = self._driver.cuEventRecord(self._start, self._stream)

    def stop(self) -> None:
        self._stopped = self._driver.cuEventRecord(self._stop, self._current())

    def wait(self) -> None:
        """Wait for all of this process's work on the GPU, and raise torch's error if some of it has failed."""
        results = *self._started, *self._stopped, *self._driver.cuCtxSynchronize()
        if any(map(int, results)):
            self._torch.cuda.synchronize()
            raise RuntimeError(f"CUDA error: the round's events could not be recorded: {results}")

    def seconds(self) -> float:
        """Return the time between the two events."""
        return float(self._events[0].elapsed_time(self._events[1])) / 1e3

    def _current(self) -> Any:
        return self._driver.CUstream(self._torch.cuda.current_stream().cuda_stream)


class HostWatch:
    """The simulator has no clock, only work to wait for."""

    def start(self) -> None: ...

    def stop(self) -> None:
        from grader.worker.simulator import cuda_library, cupy_streams

        cuda_library.returned()
        cupy_streams.returned()

    def wait(self) -> None:
        from grader.worker.simulator import start

        start.synchronize()

    def seconds(self) -> None:
        return None


def watch(device: str) -> CudaWatch | HostWatch:
    """Return a new watch, ready to start."""
    return HostWatch() if device == "simulator" else CudaWatch()
