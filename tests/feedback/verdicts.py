"""Verdicts as the judge gives them, one for each thing that can happen. The figures are made up: they test a layout."""

from __future__ import annotations

from dataclasses import replace

from grader.exercises import find
from grader.verdict import (
    Breakdown,
    CaseResult,
    Cause,
    Environment,
    Failure,
    Finding,
    GateResult,
    LineShare,
    Mismatch,
    Part,
    Timing,
    Verdict,
)
from grader.worker.simulator.lacks import sentence

__all__ = ["ALL", "GPU", "SIMULATOR", "SOURCE", "make"]

GPU = Environment("cuda", "NVIDIA H200", "580.95.05", "2.13.0+cu130", "3.7.1", "3.11.7", "bubblewrap", 4250.0,
                  sm_clock_mhz=1980, memory_clock_mhz=3201, temperature_c=41)  # fmt: skip
SIMULATOR = Environment("simulator", torch="2.13.0+cpu", triton="3.7.1", python="3.11.7", sandbox="bubblewrap")
CLOCK = "CUDA events, within 1 % of the arbiter's clock in each of 21 rounds"

SOURCE = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, 100)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n)
    tl.store(out_ptr + row * stride + offsets, x, mask=offsets < n)


def softmax(x, out):
    softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK_SIZE=1024)
"""


def make(exercise_id: str, environment: Environment, **facts: object) -> Verdict:
    """A verdict on an exercise: all cases right and nothing timed, unless the facts say otherwise."""
    exercise = find(exercise_id)
    on_gpu = environment.device == "cuda"
    cases = exercise.cases if on_gpu else exercise.simulator_cases
    base = Verdict(
        exercise=exercise.id,
        title=exercise.title,
        status="passed",
        points=exercise.correctness_points,
        max_points=exercise.max_points,
        reachable_points=exercise.max_points if on_gpu else exercise.correctness_points,
        submission_sha256="0" * 64,
        environment=environment,
        cases=tuple(CaseResult(case.name, True) for case in cases),
        gates=gates(exercise_id, "needs_gpu" if not on_gpu else "not_reached"),
        clock=CLOCK if on_gpu else "none: a simulator has no speed",
        started_at="2026-11-21T09:30:12+00:00",
        seconds=2.4,
        grader="0.1.0",
    )
    return replace(base, **facts)


def gates(exercise_id: str, *outcomes: str, ratios: tuple[float, ...] = ()) -> tuple[GateResult, ...]:
    """The exercise's gates with these outcomes (the last is repeated) and ratios."""
    exercise = find(exercise_id)
    found = []
    for number, gate in enumerate(exercise.gates):
        outcome = outcomes[min(number, len(outcomes) - 1)]
        ratio = ratios[number] if ratios else None
        earned = gate.points if outcome in ("passed", "doubt") else 0.0
        label = exercise.baseline(gate.baseline).label
        result = GateResult(gate.baseline, label, gate.at_least, outcome, earned, gate.points)
        found.append(replace(result, ratio=ratio, low=ratio * 0.985, high=ratio * 1.015) if ratio else result)
    return tuple(found)


def timings(exercise_id: str, slowdown: float = 1.0) -> tuple[Timing, ...]:
    """A submission and the baselines of its gates over the timed cases."""
    exercise = find(exercise_id)
    found = []
    for case in exercise.timed_cases:
        own = exercise.bytes_moved(case) / 4000e9 * 1e6 * slowdown
        peers = {"submission": 1.0} | {gate.baseline: gate.at_least * 1.2 / slowdown for gate in exercise.gates}
        for peer, factor in peers.items():
            us = own * factor
            gbps = exercise.bytes_moved(case) / us / 1e3
            found.append(Timing(case.name, peer, us, us * 0.99, us * 1.01, gbps, gbps / 4250.0, 7, 16))
    return tuple(found)


def failing(exercise_id: str, environment: Environment, number: int, result: CaseResult) -> Verdict:
    """Every case right but one; where that one has a failure, the cases after it were not run."""
    base = make(exercise_id, environment)
    later = base.cases[number + 1 :]
    if result.failure:
        later = tuple(CaseResult(case.name, False) for case in later)
    cases = (*base.cases[:number], replace(result, name=base.cases[number].name), *later)
    return replace(base, status="failed", points=0.0, cases=cases, failure=result.failure)


def _mismatch(**facts: object) -> CaseResult:
    return CaseResult("", False, mismatch=Mismatch("out", **facts))


def _failure(kind: str, message: str, line: int | None = None, detail: str = "") -> CaseResult:
    return CaseResult("", False, failure=Failure(kind, message, line, detail))


def _before_cases(verdict: Verdict, failure: Failure, status: str = "failed") -> Verdict:
    cases = tuple(CaseResult(case.name, False) for case in verdict.cases)
    return replace(verdict, failure=failure, cases=cases, points=0.0, status=status)


NOTES = (
    "Another process (pid 4242, `python`) used the GPU while this was timed; times may be off.",
    "The GPU held its clock back: power cap, 1980 → 1410 MHz.",
)
FINDINGS = (
    Finding("rule", "Line 14 calls `torch.softmax`: this exercise asks for a Triton kernel that does this work. It "
            "takes no points; your instructor sees this note.", 14),
    Finding("clock", "By its own CUDA events it took 0.71 of the time that the judge measured, which counts. Does "
            "something in it change the events, or which stream is the current one?"),
    Finding("disturbed", NOTES[0]),
)  # fmt: skip

CAUSES = (
    Cause(
        "many launches", "One call launches a kernel 99 times.", "Do all of it in one launch", "calls", 16, 4.0, True
    ),
    Cause("spills", "255 registers per thread are not enough.", "Give each thread fewer values to hold", "code", 16),
)

BREAKDOWN = Breakdown(
    "time",
    (Part("bytes that must move", 0.4), Part("extra bytes", 0.35), Part("launches and waiting", 0.25)),
    (LineShare(10, "x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n)", 0.75),),
)

_SLOW = gates("softmax", "passed", "failed", ratios=(5.1, 1.07))
_PASSED = gates("softmax", "passed", ratios=(5.9, 1.52))
_DOUBT = gates("softmax", "passed", "doubt", ratios=(5.9, 1.205))

ALL: dict[str, Verdict] = {
    "passed": make("softmax", GPU, points=10.0, gates=_PASSED, timings=timings("softmax")),
    "simulated": make("softmax", SIMULATOR),
    "slow": make("softmax", GPU, status="failed", points=7.0, gates=_SLOW, timings=timings("softmax", 1.6)),
    "slow_and_why": make(
        "softmax", GPU, status="failed", points=7.0, gates=_SLOW, timings=timings("softmax", 1.6), causes=CAUSES,
        breakdown=BREAKDOWN,
    ),
    "doubt": make("softmax", GPU, points=10.0, gates=_DOUBT, timings=timings("softmax")),
    "mismatch": failing(
        "softmax", SIMULATOR, 2,
        _mismatch(shape=(83, 781), wrong=1079, total=64823, first_index=(0, 768), got="0", expected="0.00127423",
                  region_low=(0, 768), region_high=(82, 780), worst_error=0.2),
    ),
    "suspect": failing(
        "softmax", GPU, 3,
        _mismatch(shape=(64, 1000), wrong=64000, total=64000, first_index=(0, 0), got="nan", expected="0.00127423",
                  region_low=(0, 0), region_high=(63, 999), not_finite=64000,
                  suspect=find("softmax").suspects[2].sentence),
    ),
    "outside": failing(
        "vector_add", SIMULATOR, 3,
        _mismatch(shape=(1025,), wrong=0, total=1025, outside=1023, outside_first_offset=1025),
    ),
    "unwritten": failing(
        "vector_add", GPU, 3,
        _mismatch(shape=(1025,), wrong=1, total=1025, first_index=(1024,), got="never written", expected="-0.3",
                  region_low=(1024,), region_high=(1024,), unwritten=1),
    ),
    "compile": failing(
        "softmax", GPU, 0,
        _failure("compile", "ValueError: arange's range must be a power of 2", 9,
                 'File "submission.py", line 15, in softmax\n    softmax_kernel[(x.shape[0],)](…)\nat 4:14: …'),
    ),
    "exception": failing(
        "softmax", SIMULATOR, 1,
        _failure("exception", "InterpreterError: NameError(\"name 'rows' is not defined\")", 8, "Traceback …"),
    ),
    "not_judged": _before_cases(
        make("mean_cuda", SIMULATOR, reachable_points=0.0),
        Failure("not_simulated", sentence("header `mma.h`"), 5),
        "not_judged",
    ),
    "crash": failing(
        "square_matrix", SIMULATOR, 2,
        _failure("crash", "The process that ran it crashed: it accessed memory that it does not have, or wrote to an "
                 "input."),
    ),
    "timeout": failing("softmax", GPU, 4, _failure("timeout", "It did not end within 60 s and was stopped.")),
    "limit": failing(
        "softmax", GPU, 1, _failure("limit", "It held 5.1 GB of memory, of which 4.0 GB are allowed, and was stopped.")
    ),
    "implausible": make(
        "softmax", GPU, status="failed", points=0.0, timings=timings("softmax", 0.4),
        failure=Failure("implausible", "4096 × 4096 in 12.6 µs is faster than this GPU allows (28.4 µs): not believed, "
                        "and kept for a person."),
    ),
    "noted": make(
        "softmax", replace(GPU, notes=NOTES), points=10.0, gates=_PASSED, timings=timings("softmax"), findings=FINDINGS
    ),
    "not_written": _before_cases(
        make("softmax", SIMULATOR), Failure("not_written", "The exercise is not written yet.", 14)
    ),
    "unusable": _before_cases(
        make("softmax", SIMULATOR),
        Failure("unusable", "The signature is softmax(x); the grader calls softmax(x, out).", 14),
        "unusable",
    ),
}  # fmt: skip
