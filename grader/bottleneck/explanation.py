"""An explanation of a submission's speed: the causes, where the bytes or the time go, and the lines that move them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import SECTOR_BYTES, WARP, Code, Evidence, Kernel, Run
from grader.bottleneck.time_model import (
    Part,
    Roofline,
    byte_parts,
    good_us,
    headroom,
    moved_again,
    roofline_of,
    roofline_us,
    time_parts,
)
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural, time

__all__ = ["Explanation", "LineShare", "explain"]

_LEAST = 0.01  # of the bytes: a line that moves fewer is not shown
_KERNELS = 6  # that are listed


@dataclass(frozen=True)
class LineShare:
    """A line of the cell, its text, and its share of the bytes that the kernels move, between 0 and 1."""

    line: int
    text: str
    share: float


@dataclass(frozen=True)
class Explanation:
    """The limits of a submission's speed. `parts` and `lines` are empty if nothing was counted.

    `unit` says what the bar divides, and `seen` lists the evidence in sentences.
    """

    exercise: Exercise
    causes: tuple[Cause, ...]
    unit: str
    parts: tuple[Part, ...]
    lines: tuple[LineShare, ...]
    seen: tuple[str, ...]
    ran: bool
    headroom: float | None = None  # the measured time over a good solution's, if there is a GPU
    roofline: Roofline | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, text and numbers, ready for `json.dumps`."""
        named = {name: [asdict(each) for each in getattr(self, name)] for name in ("causes", "parts", "lines")}
        plain = {"exercise": self.exercise.id, "ran": self.ran, "unit": self.unit, "headroom": self.headroom}
        point = asdict(self.roofline) if self.roofline is not None else None
        return {**plain, **named, "roofline": point, "seen": [*self.seen]}


def explain(exercise: Exercise, source: str, *gathered: Evidence) -> Explanation:
    """Explain a correct submission from all evidence about it, that of a GPU first."""
    simulated = next((each for each in gathered if each.simulated and each.runs), None)
    run = simulated.largest if simulated is not None else None
    on_gpu = next((each for each in gathered if not each.simulated and each.runs), None)
    parts, unit = byte_parts(exercise, run) if run is not None else (), "bytes between memory and the kernels"
    if on_gpu is not None and (of_time := time_parts(exercise, on_gpu, moved_again(exercise, run))):
        parts, unit = of_time, "time"
    return Explanation(
        exercise=exercise,
        causes=causes(exercise, source, *gathered),
        unit=unit,
        parts=parts,
        lines=_lines(source, run) if run is not None else (),
        seen=tuple(_seen(exercise, gathered)),
        ran=any(each.runs for each in gathered),
        headroom=headroom(exercise, on_gpu) if on_gpu is not None else None,
        roofline=roofline_of(exercise, on_gpu) if on_gpu is not None else None,
    )


def _lines(source: str, run: Run) -> tuple[LineShare, ...]:
    """The lines that move bytes, the most first: by all programs, or by one warp of each launch in CUDA C++."""
    moved: dict[int, float] = defaultdict(float)
    for launch in run.launches:
        for each in launch.accesses:
            moved[each.line or 0] += max(each.bytes, each.fetched)
        for warp in launch.warps:
            if warp.name == "global":
                moved[warp.line or 0] += (
                    SECTOR_BYTES * warp.units * warp.count * launch.programs * launch.threads / WARP
                )
    for operation in run.operations:
        moved[operation.line or 0] += operation.bytes if operation.line else 0
    total, text = sum(moved.values()), source.split("\n")
    known = [(line, size) for line, size in moved.items() if 0 < line <= len(text) and size >= _LEAST * total]
    by_size = sorted(known, key=lambda each: -each[1])
    return tuple(LineShare(line, text[line - 1].strip(), size / total) for line, size in by_size[:8] if total)


def _seen(exercise: Exercise, gathered: Sequence[Evidence]) -> list[str]:
    said = []
    for evidence in gathered:
        run = evidence.largest
        if run is not None:
            where = "in the simulator" if evidence.simulated else "on the GPU"
            said.append(f"Observed {where}, in the case “{run.case.name}”:")
            said += [
                f"{_name(launch.kernel)}launched {_often(launch.count)} in line {launch.line or '?'}: "
                f"{plural(launch.programs, 'block')} of {plural(launch.threads, 'thread')}."
                for launch in run.launches
            ]
            if run.us is not None:
                said.append(f"A call took {time(run.us)} on the GPU, not counting the host's time.")
        if (least := roofline_us(exercise, evidence)) is not None:
            said.append(f"By the ceilings of this GPU, it cannot take less than {time(least)}.")
        if (good := good_us(exercise, evidence)) is not None:
            said.append(f"The course's own solution takes about {time(good)}, as recorded and scaled to this GPU.")
        said += [_of_kernel(kernel) for kernel in evidence.kernels[:_KERNELS]]
        said += [
            f"Compiled: {_of_code(code)}."
            for code in {code.kernel: code for code in evidence.codes if code.kernel}.values()
        ]
    return said


def _name(kernel: str) -> str:
    return f"`{kernel}` was " if kernel else "A kernel was "


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _of_kernel(kernel: Kernel) -> str:
    facts = f"Ran on the GPU {_often(kernel.count)}, {time(kernel.us)} in all: `{kernel.name}`"
    if not kernel.programs:
        return f"{facts}."
    facts += f", {plural(kernel.programs, 'block')} of {plural(kernel.threads, 'thread')}"
    facts += f"; {plural(kernel.registers, 'register')} per thread" if kernel.registers else ""
    facts += f"; {plural(kernel.shared, 'byte')} of shared memory per block" if kernel.shared else ""
    facts += f"; an occupancy of {kernel.occupancy:.0f} % by CUDA's calculator" if kernel.occupancy else ""
    return f"{facts}."


def _of_code(code: Code) -> str:
    loads = ", ".join(
        f"{count} of {plural(width, 'byte')}" for width, count in sorted(code.loads.items(), reverse=True)
    )
    facts = [f"`{code.kernel}`"]
    facts += [f"{plural(code.registers, 'register')} per thread"] if code.registers is not None else []
    facts += [f"{plural(code.spilled, 'byte')} spilled"] if code.spilled is not None else []
    facts += [f"{plural(code.shared, 'byte')} of shared memory per block"] if code.shared else []
    facts += [f"loads per thread: {loads}"] if loads else []
    facts += [plural(code.float64, "double-precision instruction")] if code.float64 else []
    facts += ["tensor cores used"] if code.tensor_cores else []
    return "; ".join(facts)
