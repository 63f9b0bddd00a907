# right: a context manager of events, with type hints
# runs: anywhere

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch


@dataclass
class Span:
    start: torch.cuda.Event = field(default_factory=lambda: torch.cuda.Event(enable_timing=True))
    end: torch.cuda.Event = field(default_factory=lambda: torch.cuda.Event(enable_timing=True))

    @property
    def milliseconds(self) -> float:
        return self.start.elapsed_time(self.end)


@contextlib.contextmanager
def measured() -> Iterator[Span]:
    span = Span()
    stream = torch.cuda.current_stream()
    stream.record_event(span.start)
    yield span
    stream.record_event(span.end)


@torch.inference_mode()
def time_gpu(function: Callable[[], object], warmup: int = 5, repeats: int = 31) -> float:
    """Median milliseconds of a call."""
    for _ in range(warmup):
        function()
    torch.cuda.synchronize()
    spans = []
    for _ in range(repeats):
        with measured() as span:
            function()
        spans.append(span)
    torch.cuda.synchronize()
    return statistics.median(span.milliseconds for span in spans)
