"""The judge's verdict on a submission: frozen, plain, and the same in a report, a database and JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

PRACTICE_CLOCK = "practice clock: good for learning, not for a board"
ONLY_PRACTICE = (
    "This machine does not share its GPU's memory between processes, so only the practice clock works here. A "
    "submission can deceive that clock: use another machine, or give --practice-clock."
)

# How a long call reports its progress.

Progress = Callable[[str, int, int], None]  # the current step, how many are done, out of how many


# The judge's verdict on a submission: frozen, plain, and the same in a report, a database and JSON.

FailureKind = Literal[
    "unusable",  # nothing to grade: empty, syntax error, no such function, wrong signature
    "not_written",  # the stub is still there
    "not_simulated",  # it needs what the simulator does not have
    "compile",  # the kernel does not compile
    "exception",  # the submission raised
    "crash",  # the worker died: a segmentation fault, an abort, os._exit
    "illegal_access",  # the GPU (or the sanitizer) caught an access outside the buffers
    "fails_on_gpu",  # it is right in the simulator, and wrong on a GPU: a race, for example
    "timeout",  # it did not end in time
    "limit",  # it used more memory, processes, disk or output than it may
    "implausible",  # faster than the hardware allows: refused, for a person to look at
    "not_asked",  # the output is right, but the compiled kernel is not what the exercise asks for
    "wrong_answer",  # it ran, and an output is wrong
]


@dataclass(frozen=True)
class Mismatch:
    """How an output differs from the oracle. Indices are into the output, row-major; values are text."""

    output: str
    shape: tuple[int, ...]
    wrong: int
    total: int
    first_index: tuple[int, ...] | None = None
    got: str = ""
    expected: str = ""
    region_low: tuple[int, ...] = ()  # smallest and largest index of a wrong element, in each dimension
    region_high: tuple[int, ...] = ()
    worst_error: float | None = None  # largest finite |got - expected|
    unwritten: int = 0  # elements that still hold the poison
    not_finite: int = 0  # NaN or infinite where a finite value is expected (unwritten ones not counted)
    zeros: int = 0  # wrong elements that are exactly 0
    outside: int = 0  # elements written outside the output: before, after or between its rows
    outside_first_offset: int | None = None  # the first of these, in elements from the start of the output
    suspect: str = ""  # the likely bug: of the exercise's suspect with this output, or found in the source


@dataclass(frozen=True)
class Failure:
    """Why a case or the whole submission has no answer. `message` is a sentence; `line` counts from 1 in the cell."""

    kind: FailureKind
    message: str
    line: int | None = None
    detail: str = ""  # the submission's part of the traceback, or the compiler's first error
    advice: str = ""


@dataclass(frozen=True)
class CaseResult:
    """One correctness case. If it did not pass and has neither mismatch nor failure, it was not run."""

    name: str
    passed: bool
    mismatch: Mismatch | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class Timing:
    """Time per launch, with a 95 % interval. The share is of the exercise's ceiling, None if it has no ceiling."""

    case: str
    peer: str  # "submission", or a baseline's id
    median_us: float
    low_us: float
    high_us: float
    bandwidth_gbps: float
    share_of_roofline: float | None
    trials: int
    launches_per_trial: int
    clock: Literal["events", "arbiter"] = "arbiter"  # which one counted; `Verdict.clock` says why
    scale: int = 1  # the timed case has this many times the rows: a fast GPU is timed on more


@dataclass(frozen=True)
class GateResult:
    """A speed gate: the ratio is baseline time over submission time, with a 95 % interval.

    `share` is the roofline's time over the submission's; `or_share` is the one that also passes the gate.
    """

    baseline: str
    label: str
    at_least: float
    outcome: Literal["passed", "failed", "doubt", "needs_gpu", "not_reached"]
    points: float
    max_points: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    or_share: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Finding:
    """Something that a person should look at: a broken rule of the exercise, an access to memory that holds no element,
    a clock that disagreed, a disturbed run.

    It never changes the points, and security does not depend on it.
    """

    kind: Literal["rule", "access", "clock", "disturbed"]
    sentence: str
    line: int | None = None


@dataclass(frozen=True)
class Cause:
    """A cause of slowness: what was seen and its cure, in sentences, and what supports it (see `bottleneck/cause.py`).

    `at_most` is the factor in speed that the cure may bring, None if it is not known. It is an estimate from counts,
    which the cure may exceed, unless it is `timed`: a share of a measured ratio. It never changes the points.
    """

    kind: str
    seen: str
    cure: str
    basis: Literal["accesses", "calls", "code", "source", "times"]
    line: int | None = None
    at_most: float | None = None
    timed: bool = False


@dataclass(frozen=True)
class Part:
    """A part of a bar: what it is, and its share between 0 and 1."""

    label: str
    share: float


@dataclass(frozen=True)
class LineShare:
    """A line of the cell, its text, and its share of the bytes that the kernels move, between 0 and 1."""

    line: int
    text: str
    share: float


@dataclass(frozen=True)
class Breakdown:
    """Where the time or the bytes of a call go. `unit` says what the parts divide: "time", or "bytes between …".

    `parts` and `lines` are empty if nothing was counted. It is for advice, and never changes the points.
    """

    unit: str = "time"
    parts: tuple[Part, ...] = ()
    lines: tuple[LineShare, ...] = ()


@dataclass(frozen=True)
class Environment:
    """Where and how a verdict was reached. Clocks and temperature are those at the end of the timing, by NVML."""

    device: Literal["cuda", "simulator"]
    gpu: str = ""
    driver: str = ""
    torch: str = ""
    triton: str = ""
    python: str = ""
    sandbox: str = ""
    copy_gbps: float | None = None
    peak_tflops: float | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    practice: bool = False  # whether the practice clock timed it, which a submission can deceive
    changed_by: str = ""  # the file of the class that changed points, gates or limits
    notes: tuple[str, ...] = ()  # what disturbed the timing, in sentences
    uncompiled: str = ""  # without a GPU: why kernels were simulated but not compiled for one
    cell: str = ""  # the cell of a notebook that was checked: "In [3]"


@dataclass(frozen=True)
class Verdict:
    """The judge's answer. `passed`: every case is right and no gate that could be measured failed.

    `not_judged`: the simulator cannot run the submission, and no case is wrong. A GPU can judge it.
    """

    exercise: str
    title: str
    status: Literal["passed", "not_judged", "failed", "unusable"]
    points: float
    max_points: float
    reachable_points: float  # the most that this machine can give
    submission_sha256: str
    environment: Environment
    cases: tuple[CaseResult, ...] = ()
    gates: tuple[GateResult, ...] = ()
    timings: tuple[Timing, ...] = ()
    failure: Failure | None = None
    findings: tuple[Finding, ...] = ()
    clock: str = ""  # which clock counted, and why
    log: str = ""  # what the submission printed, capped
    started_at: str = ""  # ISO 8601, UTC
    seconds: float = 0.0
    grader: str = field(default="")
    judged: str = ""  # a sentence that names the judged cell, if there was a choice
    causes: tuple[Cause, ...] = ()  # why a gate was missed, the one with the largest gain first
    breakdown: Breakdown | None = None  # where the time goes, if a gate was missed

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, text and numbers, ready for `json.dumps`."""
        return asdict(self)

    def on_scale(self, max_points: float) -> Verdict:
        """The verdict with all points multiplied so that the most is `max_points`, as in a course's gradebook."""
        factor = max_points / self.max_points
        gates = tuple(
            replace(gate, points=gate.points * factor, max_points=gate.max_points * factor) for gate in self.gates
        )
        return replace(
            self,
            points=self.points * factor,
            max_points=max_points,
            reachable_points=self.reachable_points * factor,
            gates=gates,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Verdict:
        """The inverse of `to_dict` (also after a trip through JSON)."""
        cases = tuple(
            CaseResult(
                name=case["name"],
                passed=case["passed"],
                mismatch=_mismatch(case["mismatch"]),
                failure=_failure(case["failure"]),
            )
            for case in data["cases"]
        )
        environment = {**data["environment"], "notes": tuple(data["environment"]["notes"])}
        return cls(
            **{
                **data,
                "cases": cases,
                "gates": tuple(GateResult(**gate) for gate in data["gates"]),
                "timings": tuple(Timing(**timing) for timing in data["timings"]),
                "failure": _failure(data["failure"]),
                "findings": tuple(Finding(**finding) for finding in data["findings"]),
                "causes": tuple(Cause(**cause) for cause in data.get("causes", ())),
                "breakdown": _breakdown(data.get("breakdown")),
                "environment": Environment(**environment),
            }
        )


def _failure(data: dict[str, Any] | None) -> Failure | None:
    return Failure(**data) if data else None


def _breakdown(data: dict[str, Any] | None) -> Breakdown | None:
    if not data:
        return None
    parts, lines = (Part(**part) for part in data["parts"]), (LineShare(**line) for line in data["lines"])
    return Breakdown(data["unit"], tuple(parts), tuple(lines))


def _mismatch(data: dict[str, Any] | None) -> Mismatch | None:
    if not data:
        return None
    tuples = {
        key: tuple(value) if value is not None else None
        for key, value in data.items()
        if key in ("shape", "first_index", "region_low", "region_high")
    }
    return Mismatch(**{**data, **tuples})
