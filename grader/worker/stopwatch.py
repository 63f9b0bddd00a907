"""A round's own times in a worker: CUDA events, by the shortest way that there is, and the wait for its end.

Without a head start, what the host does between the flag's rise and the first record lies outside the events and inside
the judge's clock. Through torch that record took 13 to 130 µs beside an H200, in spells of seconds: its code has left
the caches by then. The driver's own call takes 11 to 17, and some 4 where it has just been made a few times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.protocol.flag import Flag

# The flag as the GPU has it: it waits for the flag, and it answers, in the order of a stream.
#
# What is called behind its wait is queued before the clock starts: what Python takes to come to its first launch is no
# part of a kernel's time, and on a busy host it varies by a tenth of a millisecond. Nor is what the host takes to notice
# that the last kernel has ended. A submission could spare itself either; so all are spared both.

_MAPPED = 2  # CU_MEMHOSTREGISTER_DEVICEMAP
_NO_LESS = 0  # CU_STREAM_WAIT_VALUE_GEQ
_IN_ORDER = 0  # CU_STREAM_WRITE_VALUE_DEFAULT: what was written before is to be seen before
_CANNOT = ("CUDA_ERROR_NOT_PERMITTED", "CUDA_ERROR_NOT_SUPPORTED")


class GpuFlag:
    """Works on torch's current stream. On a GPU or a driver that has no such operations nothing is ever queued: then
    the host waits and answers.

    Raises:
        RuntimeError: the driver answered another error: a worker that lacks what others have would be timed otherwise.
    """

    def __init__(self, flag: Flag) -> None:
        from cuda.bindings import driver

        self._driver: Any = driver
        self._possible = True
        self._ask("cuMemHostRegister", flag.address, Flag.BYTES, _MAPPED)
        self._page = int(self._ask("cuMemHostGetDevicePointer", flag.address, 0) or 0)

    def wait_raised(self, number: int) -> bool:
        """Has the stream wait until the flag is raised for this round; False where that cannot be."""
        self._ask("cuStreamWaitValue64", _current(), self._page, number, _NO_LESS)
        return self._possible

    def answer(self, number: int) -> None:
        """Has the stream answer for this round when all that was put on it before has ended. Where work of the stream's
        has failed, so does this.
        """
        self._ask("cuStreamWriteValue64", _current(), self._page + Flag.ANSWERED_AT, number, _IN_ORDER)

    def _ask(self, name: str, *arguments: Any) -> Any:
        """What the driver's function gives, while all is possible."""
        if not self._possible:
            return None
        try:
            error, *found = getattr(self._driver, name)(*arguments)
        except (AttributeError, RuntimeError):  # the bindings, or the driver, are older than the function
            self._possible = False
            return None
        if int(error):
            self._possible = False
            if error.name not in _CANNOT:
                raise RuntimeError(f"{name}: the CUDA driver answered {error.name}")
        return found[0] if found else None


def _current() -> int:
    import torch

    return int(torch.cuda.current_stream().cuda_stream)


# A round's own times in a worker: CUDA events, by the shortest way that there is, and the wait for its end.
#
# Without a head start, what the host does between the flag's rise and the first record lies outside the events and inside
# the judge's clock. Through torch that record took 13 to 130 µs beside an H200, in spells of seconds: its code has left
# the caches by then. The driver's own call takes 11 to 17, and some 4 where it has just been made a few times.

_REHEARSALS = 10


class CudaWatch:
    """Two events on the current stream. All that takes time is done before the flag rises."""

    def __init__(self) -> None:
        import torch
        from cuda.bindings import driver

        self._torch, self._driver = torch, driver
        make: Callable[..., Any] = torch.cuda.Event
        self._events = make(enable_timing=True), make(enable_timing=True)
        for event in self._events:
            event.record()  # which is what makes it
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
        """Waits for all of this process's work on the GPU.

        Raises:
            RuntimeError: some of it has failed, in torch's words.
        """
        results = *self._started, *self._stopped, *self._driver.cuCtxSynchronize()
        if any(map(int, results)):
            self._torch.cuda.synchronize()
            raise RuntimeError(f"CUDA error: the round's events could not be recorded: {results}")

    def seconds(self) -> float:
        """Between the two events."""
        return float(self._events[0].elapsed_time(self._events[1])) / 1e3

    def _current(self) -> Any:
        return self._driver.CUstream(self._torch.cuda.current_stream().cuda_stream)


class HostWatch:
    """In the simulator there is no time."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def wait(self) -> None:
        from grader.worker.simulator import start as start_module

        start_module.synchronize()

    def seconds(self) -> None:
        return None


def watch(device: str) -> CudaWatch | HostWatch:
    """A new one, ready to start."""
    return HostWatch() if device == "simulator" else CudaWatch()
