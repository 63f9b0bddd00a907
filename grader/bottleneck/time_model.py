"""Where the time of a call goes: bytes that must move, bytes beyond those, arithmetic, launches, and waiting."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from grader.bottleneck.evidence import Evidence, Run
from grader.exercise import Case, Exercise
from grader.results import RESULTS, files
from grader.verdict import Part, Timing

__all__ = [
    "Roofline", "byte_parts", "good_us", "headroom", "headroom_of", "moved_again", "recorded_us",
    "roofline_of", "roofline_us",
    "time_parts",
]  # fmt: skip

_LEAST = 0.01  # of a bar: a smaller part is not shown
_RECORDED_SMS = 132  # of the GPUs that the results were recorded on


@dataclass(frozen=True)
class Roofline:
    """A kernel below the ceilings of its GPU. `intensity`: operations per byte. `share`: of what the ceilings allow."""

    intensity: float
    tflops: float
    share: float
    copy_gbps: float
    peak_tflops: float

    @property
    def share_in_words(self) -> str:
        return f"{self.share:.0%}" if self.share >= 0.01 else f"{100 * self.share:.1g}%"

    @property
    def in_words(self) -> str:
        limit = "arithmetic" if self.intensity * self.copy_gbps > 1e3 * self.peak_tflops else "memory"
        intensity = f"{self.intensity:,.0f}" if self.intensity >= 10 else f"{self.intensity:.2g}"
        return (
            f"At {intensity} operations per byte, {limit} is the limit of this GPU. The kernel reaches "
            f"{self.share_in_words} of what the ceilings allow: {self.tflops:.3g} TFLOPS."
        )


def roofline_of(exercise: Exercise, evidence: Evidence) -> Roofline | None:
    """Return where the largest case lies on the roofline of this GPU; None if its time or a ceiling is not known."""
    run, least = evidence.largest, roofline_us(exercise, evidence)
    if run is None or not run.us or not least or not (operations := exercise.operations(run.case)):
        return None
    intensity = operations / max(1, exercise.bytes_moved(run.case))
    return Roofline(intensity, operations / run.us / 1e6, least / run.us, evidence.copy_gbps, evidence.peak_tflops)


def headroom(exercise: Exercise, evidence: Evidence) -> float | None:
    """Return the measured time over a good solution's, for the largest case; None if either is not known.

    Without a recorded solution, the roofline's time stands for it.
    """
    run, least = evidence.largest, good_us(exercise, evidence) or roofline_us(exercise, evidence)
    return run.us / least if run is not None and run.us is not None and least else None


def roofline_us(exercise: Exercise, evidence: Evidence) -> float | None:
    """Return the least time that the ceilings of this GPU allow for the largest case, in µs; None without ceilings."""
    run = evidence.largest
    if run is None or not exercise.ceiling or not evidence.copy_gbps or not evidence.peak_tflops:
        return None
    return _least_us(exercise, run.case, evidence)


def good_us(exercise: Exercise, evidence: Evidence) -> float | None:
    """Return the time of the course's own solution for the largest case, in µs; None if it was not recorded.

    If it was recorded on another GPU, it is scaled: by the copy's bandwidth if memory limits the exercise, otherwise by
    the number of SMs.
    """
    run = evidence.largest
    if run is None or not evidence.copy_gbps:
        return None
    found = [rows for rows in _recorded() if (exercise.id, run.case.name, "median_us") in rows]
    if not found:
        return None
    rows = next((rows for rows in found if rows["gpu"] == evidence.gpu), found[0])
    us = float(rows[exercise.id, run.case.name, "median_us"])
    if exercise.limited_by == "arithmetic":
        return us * _RECORDED_SMS / max(1, evidence.multiprocessors or _RECORDED_SMS)
    return us * float(rows.get(_COPY, evidence.copy_gbps)) / evidence.copy_gbps


def recorded_us(exercise: Exercise, case: Case) -> float | None:
    """Return the time of the course's own solution on the first GPU that it was recorded on, in µs."""
    found = (rows.get((exercise.id, case.name, "median_us")) for rows in _recorded())
    return next((float(us) for us in found if us is not None), None)


_COPY = ("copy", "512 MiB, device to device", "bandwidth_gbps")


@functools.cache
def _recorded() -> list[dict[Any, Any]]:
    """The recorded figures by bench, case and metric, and the name of the "gpu", one dict per GPU."""
    every = [rows for rows in files(RESULTS) if rows]
    return [
        {(row["bench"], row["case"], row["metric"]): row["value"] for row in rows}
        | {"gpu": str(rows[0]["gpu"]).removeprefix("NVIDIA ")}
        for rows in every
    ]


def headroom_of(timings: Iterable[Timing]) -> float | None:
    """Return the roofline's speed over the submission's, for its slowest case; None if there is no ceiling."""
    shares = [timing.share_of_roofline for timing in timings if timing.peer == "submission"]
    known = [share for share in shares if share]
    return 1 / min(known) if known and len(known) == len(shares) else None


def time_parts(exercise: Exercise, evidence: Evidence, moved: float) -> tuple[Part, ...]:
    """Divide the time of the largest case on a GPU.

    While no kernel runs, the GPU waits for the host: for launches, or for other work there. Without the kernels' times,
    that is not told from waiting. Bytes move at a copy's bandwidth, and operations run at the peak. `moved` is the
    number of bytes that the simulator counted over those that must move. Bytes and operations overlap: the longer of
    the two is shown. The rest is waiting: for memory's latency, for a barrier, or for threads that do not fill the GPU.
    """
    run = evidence.largest
    if roofline_us(exercise, evidence) is None or run is None or run.us is None:
        return ()
    idle = max(0.0, run.us - busy) if (busy := evidence.kernels_us) else None
    left = run.us - (idle or 0.0)
    memory, compute = _memory_us(exercise, run.case, evidence), _compute_us(exercise, run.case, evidence)
    wanted = [("bytes that must move", memory), ("extra bytes", memory * max(0.0, moved - 1))]
    if compute > memory:
        wanted = [("arithmetic", compute)]
    found = {}
    for label, us in wanted:
        found[label] = min(left, us)
        left -= found[label]
    rest = {"launches and waiting": left} if idle is None else {"waiting": left, "launches and the host": idle}
    return _shown(found | rest)


def byte_parts(exercise: Exercise, run: Run) -> tuple[Part, ...]:
    """Divide the bytes that were counted in the simulator; empty if none were.

    Without launches of its own, a submission moves all of them by operations of torch.
    """
    return _shown(_byte_sizes(exercise, run))


def _byte_sizes(exercise: Exercise, run: Run) -> dict[str, int]:
    accesses = [each for launch in run.launches for each in launch.accesses]
    used, fetched = sum(each.bytes for each in accesses), sum(max(each.bytes, each.fetched) for each in accesses)
    extra = sum(each.bytes for each in run.operations if each.line)
    if not run.launches:
        used, fetched, extra = extra, extra, 0
    must = min(exercise.bytes_moved(run.case), used)
    sizes = {"must move": must, "moved again": used - must, "fetched, not used": fetched - used, "torch": extra}
    return sizes if used else {}


def _shown(sizes: dict[str, float] | dict[str, int]) -> tuple[Part, ...]:
    """Return the sizes as shares of their sum, without those that are too small to see."""
    total = sum(sizes.values())
    return tuple(Part(label, size / total) for label, size in sizes.items() if total and size >= _LEAST * total)


def moved_again(exercise: Exercise, run: Run | None) -> float:
    """Return the bytes that the simulator counted over those that must move; 1 if none were counted.

    In CUDA C++ and Numba, one warp's sectors stand for all. Operations of torch next to the kernels count as well.
    """
    if run is None:
        return 1.0
    sizes = _byte_sizes(exercise, run)
    if sizes.get("must move"):
        return sum(sizes.values()) / sizes["must move"]
    warps = [each for launch in run.launches for each in launch.warps if each.name == "global"]
    needed = sum(min(each.units, each.needed) * each.count for each in warps)
    by_torch = sum(each.bytes for each in run.operations if each.line) / max(1, exercise.bytes_moved(run.case))
    return (sum(each.units * each.count for each in warps) / needed if needed else 1.0) + by_torch


def _least_us(exercise: Exercise, case: Case, evidence: Evidence) -> float:
    return max(_memory_us(exercise, case, evidence), _compute_us(exercise, case, evidence))


def _memory_us(exercise: Exercise, case: Case, evidence: Evidence) -> float:
    return exercise.bytes_moved(case) / evidence.copy_gbps / 1e3


def _compute_us(exercise: Exercise, case: Case, evidence: Evidence) -> float:
    return exercise.operations(case) / evidence.peak_tflops / 1e6
