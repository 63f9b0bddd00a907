"""A pretend GPU for exercises about time: it follows the rules of a real one, at a snail's pace, and computes nothing.

A launch returns at once. The kernel begins when all that was queued before it has ended, and takes its time by the
host's clock. After `install()`, torch's own calls wait for it and read its time: `torch.cuda.synchronize`, `Event`,
`current_stream`, and the timers of torch and Triton that rest on them.
"""

from __future__ import annotations

import sys
import time
import timeit
from types import SimpleNamespace
from typing import Any

from grader.worker.simulator import start

LAUNCH_MS = 0.1  # what a launch takes of the host: a real one takes some 0.005 ms
_SPIN_S = 1e-4  # a sleep ends late: the last bit is waited for awake

_free_at = 0.0  # when all that is queued will have ended, in seconds of `time.perf_counter`
_installed = False


def launch(ms: float) -> None:
    """Queues a kernel that takes so many milliseconds; returns once it is queued, after `LAUNCH_MS`."""
    global _free_at
    now = time.perf_counter()
    _free_at = max(now, _free_at) + ms / 1e3
    while time.perf_counter() < now + LAUNCH_MS / 1e3:
        pass


def synchronize(device: Any = None) -> None:
    """Waits until all that was queued has ended, and raises what a simulated kernel did wrong.

    Raises:
        RuntimeError: as `grader.worker.simulator.start.synchronize`.
    """
    _wait_until(_free_at)
    start.synchronize()


def _wait_until(at: float) -> None:
    while (left := at - time.perf_counter()) > 0:
        if left > _SPIN_S:
            time.sleep(left - _SPIN_S)


class Event:
    """`torch.cuda.Event`: a mark in the queue, with the time at which the queue got there."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                 external: bool = False) -> None:  # fmt: skip
        self._timed = enable_timing
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Puts the mark behind all that is queued."""
        self._at = max(time.perf_counter(), _free_at)

    def wait(self, stream: Any = None) -> None:
        """Has what is queued later wait for the mark, as it does anyway: there is one queue."""

    def query(self) -> bool:
        """Whether the mark has been reached."""
        return self._at is None or time.perf_counter() >= self._at

    def synchronize(self) -> None:
        """Waits until the mark has been reached."""
        if self._at is not None:
            _wait_until(self._at)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to the other.

        Raises:
            ValueError: an event takes no time, or was not recorded; in torch's words.
            RuntimeError: a mark has not been reached yet; in torch's words.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return 1e3 * (end_event._at - self._at)


class Stream:
    """`torch.cuda.Stream`, as `current_stream` gives it: the one queue there is."""

    cuda_stream = 0

    def synchronize(self) -> None:
        synchronize()

    def query(self) -> bool:
        """Whether all that was queued has ended."""
        return time.perf_counter() >= _free_at

    def record_event(self, event: Event | None = None) -> Event:
        """The event, or a new one, recorded."""
        event = Event() if event is None else event
        event.record()
        return event

    def wait_event(self, event: Event) -> None:
        """Nothing: what is queued later comes later."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing: there is no other stream."""


def install() -> None:
    """Puts the pretend GPU in the place of torch's calls, for good. `torch.cuda.is_available()` stays as it is.

    A second call does nothing.
    """
    global _installed
    if _installed:
        return
    import torch

    start.install()  # it puts calls of its own there, and would do so later
    cuda: Any = torch.cuda
    cuda.synchronize = synchronize
    cuda.Event = Event
    cuda.current_stream = cuda.default_stream = lambda device=None: Stream()
    accelerator: Any = torch.accelerator
    accelerator.synchronize = synchronize
    _mend_timers()
    _installed = True


def _mend_timers() -> None:
    """Has `torch.utils.benchmark.Timer` and `triton.testing.do_bench` see this GPU: both ask for a real one."""
    from torch.utils.benchmark import Timer

    asks: Any = Timer.__init__
    asks.__defaults__ = tuple(_now if callable(default) else default for default in asks.__defaults__)
    if "triton" in sys.modules:
        from triton.runtime import driver

        device = SimpleNamespace(Event=Event, synchronize=synchronize)
        nothing = {"get_empty_cache_for_benchmark": lambda: None, "clear_cache": lambda cache: None}
        driver.set_active(SimpleNamespace(get_device_interface=lambda: device, **nothing))


def _now() -> float:
    synchronize()
    return timeit.default_timer()
