"""A pretend GPU for exercises about time: slow, and ordered like a real one, but it computes nothing.

A launch returns at once. Its kernel starts when all earlier work has ended, and takes its time by the host's clock.
After `install()`, torch's calls wait for this GPU and read its time: `torch.cuda.synchronize`, `Event`,
`current_stream`, and the timers of torch and Triton that use them.
"""

from __future__ import annotations

import sys
import time
import timeit
from types import SimpleNamespace
from typing import Any

from grader.worker.simulator import start

LAUNCH_MS = 0.1  # on the host; a real launch takes about 0.005 ms
_SPIN_S = 1e-4  # a sleep may end late, so the last part of a wait is a busy loop

_free_at = 0.0  # when all queued work will have ended, in seconds of `time.perf_counter`
_installed = False


def launch(ms: float) -> None:
    """Queue a kernel that takes `ms` milliseconds, and return after `LAUNCH_MS`."""
    global _free_at
    now = time.perf_counter()
    _free_at = max(now, _free_at) + ms / 1e3
    while time.perf_counter() < now + LAUNCH_MS / 1e3:
        pass


def synchronize(device: Any = None) -> None:
    """Wait until all queued work has ended, then raise the failure of a simulated kernel, if there is one."""
    _wait_until(_free_at)
    start.synchronize()


def _wait_until(at: float) -> None:
    while (left := at - time.perf_counter()) > 0:
        if left > _SPIN_S:
            time.sleep(left - _SPIN_S)


class Event:
    """`torch.cuda.Event`: a mark in the queue, with the time at which the queue reached it."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                 external: bool = False) -> None:  # fmt: skip
        self._timed = enable_timing
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        self._at = max(time.perf_counter(), _free_at)

    def wait(self, stream: Any = None) -> None:
        """Do nothing: there is one queue, so later work waits anyway."""

    def query(self) -> bool:
        return self._at is None or time.perf_counter() >= self._at

    def synchronize(self) -> None:
        if self._at is not None:
            _wait_until(self._at)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between two events, or raise torch's own errors."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return 1e3 * (end_event._at - self._at)


class DeviceEvent(Event):
    """`torch.Event`, which takes a device first; the GPU's is the default."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False) -> None:  # fmt: skip
        super().__init__(enable_timing, blocking, interprocess)


class Stream:
    """`torch.cuda.Stream`, as `current_stream` returns it: the only queue."""

    cuda_stream = 0

    def synchronize(self) -> None:
        synchronize()

    def query(self) -> bool:
        return time.perf_counter() >= _free_at

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record()
        return event

    def wait_event(self, event: Event) -> None:
        """Do nothing: later work runs later."""

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: there is no other stream."""


def install() -> None:
    """Replace torch's calls with this GPU's, permanently; a second call does nothing.

    `torch.cuda.is_available()` stays as it is.
    """
    global _installed
    if _installed:
        return
    import torch

    start.install()  # it replaces some of the same calls, so it must run first
    cuda: Any = torch.cuda
    accelerator: Any = torch.accelerator
    module: Any = torch
    cuda.synchronize = accelerator.synchronize = synchronize
    cuda.Event, module.Event = Event, DeviceEvent
    cuda.current_stream = cuda.default_stream = accelerator.current_stream = lambda device=None: Stream()
    _patch_timers()
    _installed = True


def _patch_timers() -> None:
    """Make `torch.utils.benchmark.Timer` and `triton.testing.do_bench`, which ask for a real GPU, use this one."""
    from torch.utils.benchmark import Timer

    make: Any = Timer.__init__
    make.__defaults__ = tuple(_now if callable(default) else default for default in make.__defaults__)
    if "triton" in sys.modules:
        from triton.runtime import driver

        device = SimpleNamespace(Event=Event, synchronize=synchronize)
        nothing = {"get_empty_cache_for_benchmark": lambda: None, "clear_cache": lambda cache: None}
        driver.set_active(SimpleNamespace(get_device_interface=lambda: device, **nothing))


def _now() -> float:
    synchronize()
    return timeit.default_timer()
