"""The time that the host adds to the judge's rounds of a submission and a baseline, from a session's start on."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple
from unittest import mock

from benchmarks.limits import Limit
from benchmarks.material import honest
from benchmarks.rows import Recorder
from grader.exercises import find
from grader.judge.checking.buffers import Layout
from grader.judge.process.worker import Round
from grader.judge.score import interval
from grader.judge.timing.clock import NO_DRIFT, Clock, Excess
from grader.judge.timing.clock_choice import Reading

_EXERCISE = "vector_add"
_GRADINGS = 12
_A_GRADING_S = 15.0


class Heard(NamedTuple):
    """One round in microseconds: a launch by the worker's events, then what its parts took beyond the calibration.

    `drift_us` and `look_drift_us` are the drifts of the switch and of the probe, not subtracted from the others.
    `strained` is 1 if the processor was slow.
    """

    peer: str
    launch_us: float
    switch_us: float
    copy_in_us: float
    look_us: float
    drift_us: float
    look_drift_us: float
    strained: float


@contextmanager
def listening() -> Iterator[list[Heard]]:
    """Collect the rounds that the clock reads in this process."""
    heard: list[Heard] = []
    read = Clock.read

    def listen(clock: Clock, layout: Layout, one: Round, drift: Excess = NO_DRIFT, trusted: bool = False) -> Reading:
        if one.event_s is not None:
            more = (
                one.event_s / len(layout.launches),
                clock.switch_excess_s(one),
                one.copy_in_s - clock.copy_in_s(layout.used["inputs"]),
                clock.probe_excess_s(one),
                drift.switch_s,
                drift.probe_s,
            )
            whose = "baseline" if trusted else "submission"
            heard.append(Heard(whose, *(1e6 * each for each in more), float(drift.strained)))
        return read(clock, layout, one, drift, trusted)

    with mock.patch.object(Clock, "read", listen):
        yield heard


def noise(recorder: Recorder) -> None:
    """Rows `clock/noise`, one case per grading and competitor: launches, and by how much rounds exceed the calibration.

    Each grading also has the time it began, and the processor time lost to a virtual machine's host and to other
    threads. The clock that counted is printed.
    """
    from grader.judge.arbiter import Arbiter

    limit, begun = Limit(150), time.monotonic()
    source, exercise = honest(_EXERCISE)[0].source, find(_EXERCISE)
    arbiter = Arbiter("cuda")
    try:
        for number in range(1, _GRADINGS + 1):
            if not limit.allows(_A_GRADING_S):
                break
            since_s, (stolen_s, preempted) = time.monotonic() - begun, taken()
            with listening() as heard:
                verdict = arbiter.grade(source, exercise)
            print(f"grading {number}: {verdict.clock}; {verdict.gates}", flush=True)
            case, (stolen_now_s, preempted_now) = f"grading {number}", taken()
            recorder.add("clock/noise", case, "begun_s", "s", since_s)
            recorder.add("clock/noise", case, "stolen_s", "s", stolen_now_s - stolen_s)
            recorder.add("clock/noise", case, "preempted", "1", preempted_now - preempted)
            _record(recorder, case, heard)
    finally:
        arbiter.close()


def taken(stat: str = "/proc/stat") -> tuple[float, int]:
    """Return the seconds so far in which the host ran others on this machine's processors, summed over all of them.

    The second value is how often this process was preempted.
    """
    stolen = int(Path(stat).read_text(encoding="ascii").split()[8])  # "cpu", then the eighth of its times
    return stolen / os.sysconf("SC_CLK_TCK"), resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _record(recorder: Recorder, case: str, heard: list[Heard]) -> None:
    for peer in ("submission", "baseline"):
        rounds: list[Any] = [one for one in heard if one.peer == peer]
        for metric in Heard._fields[1:]:
            if rounds:
                values = [getattr(one, metric) for one in rounds]
                if metric == "strained":
                    recorder.add("clock/noise", f"{case}, {peer}", metric, "1", mean(values))
                else:
                    recorder.add("clock/noise", f"{case}, {peer}", metric, "µs", *astuple(interval(values)))
