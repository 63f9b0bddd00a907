"""Causes in how work is divided: a serial tail, lanes that take turns, atomics, and calls that wait for the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

from grader.bottleneck.evidence import Evidence, Launch, Run
from grader.bottleneck.time_model import recorded_us
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural

__all__ = ["atomics", "divergence", "runtime_waits", "serial_tail"]

_PER_ATOMIC = 64  # elements: a warp or a program that adds up first needs fewer atomics
_ATOMICS_PER_US = 500_000.0  # of a GPU
_STEP_US = 0.065  # an access of a loop in one warp
_SHARE = 0.5  # of a good solution's time that is worth a sentence
_FEW, _MANY = 8, 132  # blocks
_LANES = 4  # that are more than the ends of rows
_STEPS = 32  # of one thread: fewer are the sums of a block's warps
_GROWS = 1.1  # a ratio between two cases that is not the same


def divergence(evidence: Evidence) -> Iterator[Cause]:
    """Two long loops of one warp, each by other lanes."""
    run = evidence.largest
    for launch in run.launches if run is not None else ():
        some = [each for each in launch.partly if each.lanes.bit_count() >= _LANES]
        pairs = [(a, b) for a, b in combinations(some, 2) if not a.lanes & b.lanes and a.line != b.line]
        if launch.programs > 1 and pairs:
            first, second = max(pairs, key=lambda pair: min(each.turns for each in pair))
            lines = sorted(each.line or 0 for each in (first, second))
            seen = (
                f"Lanes of one warp run different loops, in lines {lines[0]} and {lines[1]}. The warp runs one after "
                "the other, and its other lanes are idle meanwhile."
            )
            cure = "Let all threads of a warp take the same branch: divide the work by warps, or do both in one loop"
            both = first.turns + second.turns
            yield Cause(
                "divergence", seen, cure, "accesses", lines[0] or None, both / max(1, first.turns, second.turns)
            )
            return


def serial_tail(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A thread or warp that does much more than the others of its block, or than the other blocks."""
    yield from _of_a_block(exercise, evidence)
    yield from _after_the_others(exercise, evidence)


def _of_a_block(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    found: list[tuple[float, Launch]] = []
    for run in evidence.runs if exercise.timed_cases else ():
        of_run: list[tuple[float, Launch]] = []
        for launch in run.launches:
            idle = launch.total - launch.alone < launch.programs  # the case is too small for the other warps
            if launch.alone < _STEPS * launch.programs or idle or launch.programs == 1:
                continue
            timed = exercise.timed_cases[-1]
            planned = _blocks(evidence, launch.line) if evidence.planned is not None else 0
            blocks = planned / launch.programs if planned else _outputs(Run(timed)) / _outputs(run)
            work = exercise.operations(timed) / max(1, exercise.operations(run.case))
            of_run.append((launch.alone * blocks / max(1.0, (launch.total - launch.alone) * work), launch))
        if not of_run:
            return
        found.append(max(of_run, key=lambda one: one[0]))
    if not found or min(ratio for ratio, _ in found) < 1:
        return
    ratio, launch = min(found, key=lambda one: one[0])
    own = [each for each in launch.partly if each.lanes.bit_count() == 1]
    line = max(own, key=lambda each: each.turns).line if own else launch.line
    who = "One thread" if own else "One warp"
    seen = f"{who} of each block makes most of the accesses, while the others wait or have finished."
    cure = "Divide this work among all threads of the block, or add up fewer values"
    yield Cause("serial tail", seen, cure, "accesses", line, 1 + ratio / 2)


def _after_the_others(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A block that reads what many others have written, in a second launch or as the last one of the first."""
    planned, runs = evidence.planned, evidence.runs
    good = recorded_us(exercise, planned.case) if planned is not None else None
    if planned is None or not good or len(runs) < 2:
        return
    blocks = max((each.programs for each in planned.launches), default=0)
    small, large = runs[0], runs[-1]
    before, now = (max((each.programs for each in run.launches), default=0) for run in (small, large))
    if blocks < _MANY or now <= before:
        return
    for first, second in zip(small.launches, large.launches, strict=False):
        there = _blocks(evidence, second.line)
        if first.line != second.line or _FEW < there < _MANY:
            continue
        steps = [each.most if there <= _FEW else _excess(each) for each in (first, second)]
        slope = (steps[1] - steps[0]) / (now - before)
        expected = steps[1] + slope * (blocks - now)
        if slope > 0 and expected * _STEP_US >= _SHARE * good:
            threads = "block" if second.threads > 32 else "warp" if second.threads > 1 else "thread"
            seen = (
                f"One {threads} reads what all {plural(blocks, 'block')} have written. Each of its threads makes about "
                f"{expected:,.0f} accesses, one after another, while the rest of the GPU is idle."
            )
            cure = (
                "Let each block add up more values first, so that fewer remain, and use a block of 256 threads or more"
            )
            yield Cause("serial tail", seen, cure, "accesses", second.line, 1 + expected * _STEP_US / good)
            return


def _excess(launch: Launch) -> float:
    return launch.most - (launch.total - launch.most) / max(1, launch.programs - 1)


def _blocks(evidence: Evidence, line: int | None) -> int:
    planned = evidence.planned.launches if evidence.planned is not None else ()
    return max((each.programs for each in planned if each.line == line), default=0)


def _outputs(run: Run) -> int:
    read = {array.name for array in run.case.inputs}
    return max(1, sum(prod(array.shape) for array in run.case.arrays if array.name not in read))


def atomics(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """An atomic for few elements, or more of them than a good solution has time for."""
    run = evidence.largest
    if run is None:
        return
    launch = max(run.launches, key=_atomics, default=None)
    count = _atomics(launch) if launch is not None else 0
    if launch is None or not count:
        return
    of_blocks = [each.line for each in launch.accesses if each.kind == "atomic"]
    line = of_blocks[0] if of_blocks else launch.line
    if exercise.limited_by == "memory":
        least = min(evidence.runs, key=lambda each: each.elements)
        grows = least is run or sum(map(_atomics, least.launches)) < sum(map(_atomics, run.launches))
        case = run.case if grows or not exercise.timed_cases else exercise.timed_cases[-1]  # a fixed grid has as many
        elements = sum(prod(array.shape) for array in case.inputs)
        if count * _PER_ATOMIC > elements:
            each = elements / count
            seen = (
                f"There is one atomic for {'each element' if each < 1.5 else f'every {each:.0f} elements'}, and "
                "atomics to the same address take turns."
            )
            cure = (
                "Let each thread combine several values in registers first, and each warp or block those of its threads"
            )
            at_most = _PER_ATOMIC / each if each >= 1 else float(_PER_ATOMIC)
            yield Cause("atomics", seen, cure, "accesses", line, at_most)
        return
    if not exercise.timed_cases:
        return
    timed = exercise.timed_cases[-1]
    good = recorded_us(exercise, timed)
    least = min(evidence.runs, key=lambda each: exercise.operations(each.case))
    before = sum(map(_atomics, least.launches)) / max(1, exercise.operations(least.case))
    rate = count / max(1, exercise.operations(run.case))
    with_work = _GROWS * exercise.operations(least.case) < exercise.operations(run.case) and rate * _GROWS >= before
    expected = rate * exercise.operations(timed) if with_work else count * _outputs(Run(timed)) / _outputs(run)
    if good and expected / _ATOMICS_PER_US >= _SHARE * good:
        of_result = expected / _outputs(Run(timed))
        seen = (
            f"There are {plural(round(of_result), 'atomic')} for each element of the result in the case “{timed.name}”."
        )
        cure = "Let one block or thread add up all parts of an element in registers, and store it once"
        yield Cause("atomics", seen, cure, "accesses", line, 1 + expected / _ATOMICS_PER_US / good)


def _atomics(launch: Launch) -> int:
    return launch.atomics or sum(each.elements for each in launch.accesses if each.kind == "atomic")


def runtime_waits(evidence: Evidence) -> Iterator[Cause]:
    """Memory of the GPU that each call allocates, copies to or frees: the host and the GPU wait for each other."""
    run = evidence.largest
    if run is None or not run.waits:
        return
    names = ", ".join(dict.fromkeys(f"`{each.name}`" for each in run.waits))
    seen = f"Each call runs {names}. There the host waits for the GPU, so the next kernel cannot be queued."
    cure = "Pass sizes and pointers as arguments of the kernel, and allocate scratch memory once or with `torch.empty`"
    yield Cause("waits for the GPU", seen, cure, "calls", run.waits[0].line)
