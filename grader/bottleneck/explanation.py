"""An explanation of a submission's speed: the causes, where the bytes or the time go, and the lines that move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from grader.bottleneck.breakdown import breakdown, timed
from grader.bottleneck.cause import ranked
from grader.bottleneck.counters import Counted, agreement, measured
from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Code, Evidence, Graph, Kernel, Operation
from grader.bottleneck.time_model import Roofline, good_us, headroom, headroom_of, roofline_of, roofline_us
from grader.exercise import Exercise
from grader.exercises import find
from grader.verdict import Breakdown, Cause, Verdict
from grader.words import plural, time

__all__ = ["Explanation", "explain", "with_counters", "with_why"]

_KERNELS, _OPERATIONS = 6, 8  # that are listed


@dataclass(frozen=True)
class Explanation:
    """The limits of a submission's speed. `seen` lists the evidence in sentences."""

    exercise: Exercise
    causes: tuple[Cause, ...]
    breakdown: Breakdown
    seen: tuple[str, ...]
    ran: bool
    headroom: float | None = None  # the measured time over a good solution's, if there is a GPU
    roofline: Roofline | None = None
    counted: Counted | None = None
    measured: tuple[str, ...] = ()  # what the hardware counters say, or why they say nothing

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, text and numbers, ready for `json.dumps`."""
        plain = {"exercise": self.exercise.id, "ran": self.ran, "headroom": self.headroom}
        causes = [asdict(each) for each in self.causes]
        point = asdict(self.roofline) if self.roofline is not None else None
        counters = {"sentences": [*self.measured], "values": dict(self.counted.values) if self.counted else {}}
        found = {**plain, "causes": causes, **asdict(self.breakdown), "roofline": point, "seen": [*self.seen]}
        return found | ({"counters": counters} if self.measured else {})


def explain(exercise: Exercise, source: str, *gathered: Evidence) -> Explanation:
    """Explain a correct submission from all evidence about it, that of a GPU first."""
    on_gpu = next((each for each in gathered if not each.simulated and each.runs), None)
    return Explanation(
        exercise=exercise,
        causes=causes(exercise, source, *gathered),
        breakdown=breakdown(exercise, source, *gathered),
        seen=tuple(_seen(exercise, gathered)),
        ran=any(each.runs for each in gathered),
        headroom=headroom(exercise, on_gpu) if on_gpu is not None else None,
        roofline=roofline_of(exercise, on_gpu) if on_gpu is not None else None,
    )


def with_counters(explanation: Explanation, gathered: Sequence[Evidence], counted: Counted | str) -> Explanation:
    """Return the explanation with what the hardware counters say, or with the sentence that says why they do not."""
    if isinstance(counted, str):
        return replace(explanation, measured=(counted,))
    said = measured(explanation.exercise, counted)
    said += agreement(explanation.exercise, explanation.causes, gathered, counted)
    return replace(explanation, counted=counted, measured=tuple(said))


def with_why(verdict: Verdict, source: str, simulated: Evidence) -> Verdict:
    """Return a verdict on a slow submission with what the simulator tells as well: causes, extra bytes and lines."""
    exercise = find(verdict.exercise)
    found = [*verdict.causes, *causes(exercise, source, simulated)]
    own = timed(exercise, verdict.timings, verdict.environment)
    return replace(
        verdict,
        causes=ranked(found, headroom_of(verdict.timings)),
        breakdown=breakdown(exercise, source, own, simulated),
    )


def _seen(exercise: Exercise, gathered: Sequence[Evidence]) -> list[str]:
    said = []
    for evidence in gathered:
        run = evidence.largest
        if run is not None:
            observed = [
                f"{_name(launch.kernel)}launched {_often(launch.count)} in line {launch.line or '?'}: "
                f"{plural(launch.programs, 'block')} of {plural(launch.threads, 'thread')}."
                for launch in run.launches
            ]
            if run.operations:
                observed.append(_of_operations(run.operations))
            if run.us is not None:
                observed.append(f"A call took {time(run.us)}, from its start on the GPU to its end there.")
            where = "in the simulator" if evidence.simulated else "on the GPU"
            said += [f"Observed {where}, in the case “{run.case.name}”:", *observed] if observed else []
        if (least := roofline_us(exercise, evidence)) is not None:
            said.append(f"By the ceilings of this GPU, it cannot take less than {time(least)}.")
        if (good := good_us(exercise, evidence)) is not None:
            said.append(f"The course's own solution takes about {time(good)}, as recorded and scaled to this GPU.")
        said += [_of_kernel(kernel) for kernel in evidence.kernels[:_KERNELS]]
        said += [_of_graph(graph) for graph in evidence.graphs[-1:] if graph.special]
        said += [
            f"Compiled: {_of_code(code)}."
            for code in {code.kernel: code for code in evidence.codes if code.kernel}.values()
        ]
    return said


def _of_operations(operations: Sequence[Operation]) -> str:
    """The operations by name, those that move most bytes first."""
    by_size = sorted(operations, key=lambda each: -each.bytes)
    names = list(dict.fromkeys(f"`{each.name}`" for each in by_size))
    more = len(names) - _OPERATIONS
    listed = ", ".join(names[:_OPERATIONS]) + (f" and {plural(more, 'other')}" if more > 0 else "")
    return f"Operations of torch were called {_often(sum(each.count for each in operations))}: {listed}."


def _of_graph(graph: Graph) -> str:
    functions = plural(graph.special, "special function")
    return f"The captured graph computes {functions} for each element: {graph.special_names}."


def _name(kernel: str) -> str:
    return f"`{kernel}` was " if kernel else "A kernel was "


def _often(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


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
    loads, stores = (
        ", ".join(f"{count} of {plural(width, 'byte')}" for width, count in sorted(widths.items(), reverse=True))
        for widths in (code.loads, code.stores)
    )
    facts = [f"`{code.kernel}`"]
    facts += [f"{plural(code.registers, 'register')} per thread"] if code.registers is not None else []
    facts += [f"{plural(code.spilled, 'byte')} spilled"] if code.spilled is not None else []
    facts += [f"{plural(code.shared, 'byte')} of shared memory per block"] if code.shared else []
    facts += [f"loads per thread: {loads}"] if loads else []
    facts += [f"stores per thread: {stores}"] if stores else []
    facts += [plural(code.float64, "double-precision instruction")] if code.float64 else []
    facts += ["tensor cores used"] if code.tensor_cores else []
    return "; ".join(facts)
