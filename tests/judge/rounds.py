"""Rounds that cost what a clock was calibrated to, and what they are made of."""

from collections.abc import Callable
from dataclasses import dataclass

from grader.exercise import Array, Case
from grader.judge.process.worker import Round
from grader.judge.timing.clock import Clock, Curve

US = 1e-6
CASE = Case("case", (Array("x", (64,)), Array("out", (64,), role="out")))
TWO_OUTPUTS = Case("two", (Array("x", (64,)), Array("a", (64,), role="out"), Array("b", (64,), role="out")))
CLOCK = Clock(
    switch_s=Curve((1e-3, 40e-3), (150 * US, 150 * US)),
    copy_in_s=Curve((0.0, 1e9), (20 * US, 1020 * US)),
    probe_s=Curve((0.0, 100.0), (30 * US, 130 * US)),
    jitter_s=40 * US,
    copy_in_jitter_s=90 * US,
)


@dataclass
class Looked:
    """A look of so many copies."""

    copies: int
    take: Callable[[], bytes] = bytes


def a_round(launches_s, layout=None, clock=CLOCK, more=(0.0, 0.0, 0.0), event_s=None):
    """A round that costs what the clock was calibrated to, and `more` in its three parts."""
    copy_in_s = clock.copy_in_s(layout.used["inputs"]) if layout else 0.0
    look = Looked(len(layout.launches) * len(layout.case.outputs) if layout else 0)
    work_s = launches_s + clock.switch_s(launches_s)
    return Round(copy_in_s + more[0], work_s + more[1], clock.probe_s(look.copies) + more[2], event_s, look, b"")
