"""CuPy's streams and events without a GPU: all work is done when a call returns, but a missing wait for it shows.

The default stream waits for blocking streams by itself, so that those are one with it here. Each stream, each event and
the host count how many launches of every other stream come before.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from grader.worker.simulator import cuda_library
from grader.worker.simulator.accesses import RACE, observe

_UNJOINED = (
    "The function returns, but nothing waits for the non-blocking stream on which this kernel runs: on a GPU, its "
    "output may be read before it is written."
)
_ADVICE = "Call `stream.synchronize()`, or let `cupy.cuda.Stream.null.wait_event(stream.record())` wait for it."
_thread = threading.local()
_own: list[Stream] = []  # the non-blocking ones
_host: dict[int, int] = {}


class Current:
    """Something that `with` and `use` make current, and that can be waited for."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def use(self) -> Any:
        return self

    def synchronize(self) -> None:
        """Wait for all work, and raise the failure of a kernel."""
        cuda_library.synchronize()


class Stream(Current):
    """`cupy.cuda.Stream`."""

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptr: int = 0, **keywords: Any) -> None:
        self._ptr = ptr
        self.queued, self.line = 0, 0
        self.own = non_blocking and not null
        self.seen: dict[int, int] = {} if self.own or not hasattr(Stream, "null") else Stream.null.seen
        if self.own:
            _own.append(self)

    @property
    def ptr(self) -> int:
        self.own = False  # others may wait for it, too
        return self._ptr

    @property
    def done(self) -> bool:
        self.synchronize()
        return True

    def __enter__(self) -> Any:
        _stack().append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _stack().pop()

    def use(self) -> Any:
        _stack()[-1] = self
        return self

    def synchronize(self) -> None:
        _add(_host, self.seen)
        cuda_library.raise_failure()

    def record(self, event: Any = None) -> Any:
        made = event or Event()
        made.record(self)
        return made

    def wait_event(self, event: Any) -> None:
        _add(self.seen, event.seen)


Stream.null = Stream(null=True)


class Event:
    """`cupy.cuda.Event`: a moment of the host's clock."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.at_s = 0.0
        self.seen: dict[int, int] = {}

    @property
    def done(self) -> bool:
        self.synchronize()
        return True

    def record(self, stream: Any = None) -> None:
        self.at_s = time.perf_counter()
        self.seen = dict((stream or current()).seen)

    def synchronize(self) -> None:
        _add(_host, self.seen)
        cuda_library.raise_failure()


def current() -> Stream:
    """The stream of this thread on which kernels run."""
    return _stack()[-1]


def queue(stream: Any, line: int) -> None:
    """Count the launch of a kernel that may write to an output; None is the current stream."""
    stream = stream or current()
    if isinstance(stream, Stream) and stream.own:
        stream.queued, stream.line = stream.queued + 1, line
        stream.seen[id(stream)] = stream.queued


def wait_for_all() -> None:
    """The host waits for the GPU."""
    _host.update((id(each), each.queued) for each in _own)


cuda_library.waits.append(wait_for_all)


def returned() -> None:
    """Observe work for which nothing waits, now that the function has returned."""
    for each in _own:
        if each.own and each.queued > max(_host.get(id(each), 0), Stream.null.seen.get(id(each), 0)):
            observe(RACE, _UNJOINED, each.line, _ADVICE)
    wait_for_all()


def _stack() -> list[Stream]:
    if not hasattr(_thread, "stack"):
        _thread.stack = [Stream.null]
    stack: list[Stream] = _thread.stack
    return stack


def _add(seen: dict[int, int], more: dict[int, int]) -> None:
    for number, count in more.items():
        seen[number] = max(seen.get(number, 0), count)
