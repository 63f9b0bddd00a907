"""Causes at the end of a call: a last wave of few blocks, or one block that goes on alone."""

from __future__ import annotations

from collections.abc import Iterator

from grader.bottleneck.evidence import Access, Evidence, Launch
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural, time

__all__ = ["last_wave", "serial_tail"]

_OF_AN_H100 = 132  # SMs, where the GPU is not known
_COUNTS_SMS = "multiprocessor"  # in a cell, without underscores
_UNEVEN = 1.2  # times as long as if all SMs had the same number of blocks
_TURNS = 128  # of a loop in one program; each takes 0.1 µs or more, and a memory-bound call 60 µs
_SHARE = 0.2  # of the time of all kernels
_FEW = 4  # a kernel that uses less than a fourth of the SMs


def last_wave(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    """Blocks that cannot be divided evenly among the SMs, where arithmetic is the limit.

    The blocks of an SM share its arithmetic, so it does not matter here how many of them run at a time. Without a GPU,
    only a number of programs that is the same for all sizes tells: the simulator's cases are small.
    """
    ran, multiprocessors, line = evidence.main_kernel, evidence.multiprocessors or _OF_AN_H100, None
    programs = ran.programs if ran is not None else 0
    if evidence.simulated and _COUNTS_SMS not in source.lower().replace("_", ""):
        programs, line = _same_for_all(evidence)
    if exercise.limited_by != "arithmetic" or programs <= multiprocessors:
        return
    most = -(-programs // multiprocessors)
    at_most = most * multiprocessors / programs
    if at_most >= _UNEVEN:
        sms = f"{multiprocessors} SMs" if evidence.multiprocessors else f"the {multiprocessors} SMs of an H100"
        seen = (
            f"The {plural(programs, 'block')} cannot be divided evenly among {sms}: "
            f"some get {most}, while the others get {most - 1} and are idle during the last wave."
        )
        cure = "Choose tile sizes that make the number of blocks a multiple of the number of SMs, or slightly less"
        yield Cause("last wave", seen, cure, "calls", line, at_most)


def _same_for_all(evidence: Evidence) -> tuple[int, int | None]:
    """The number of programs of the only launch, and its line, if all cases have as many; otherwise 0."""
    launches = [launch for run in evidence.runs for launch in run.launches]
    programs = [*(launch.programs for launch in launches), *(code.programs for code in evidence.codes)]
    numbers = {number for number in programs if number}
    cases = {run.case.name for run in evidence.runs} | {code.case for code in evidence.codes if code.programs}
    alone = len({(each.kernel, each.line) for each in launches}) == 1
    return (numbers.pop(), launches[0].line) if alone and len(numbers) == 1 and len(cases) > 1 else (0, None)


def serial_tail(evidence: Evidence) -> Iterator[Cause]:
    """A launch of few programs after one that fills the GPU, whose values they go through alone.

    Kernels of torch's operations may fill the GPU as well.
    """
    cure = "Let the programs of the first launch write fewer values, each the sum of several blocks"
    alone = [each for each in evidence.kernels if 0 < each.programs <= evidence.multiprocessors // _FEW]
    own = not any(run.operations for run in evidence.runs)
    filling = own and any(each.programs >= max(2, evidence.multiprocessors) for each in evidence.kernels)
    us, every = sum(each.us for each in alone), evidence.kernels_us
    if filling and every > us >= _SHARE * every:
        worst = max(alone, key=lambda each: each.us)
        seen = (
            f"`{worst.name}` runs in {plural(worst.programs, 'block')}, and takes {time(us)} of the kernels' "
            f"{time(every)}. Meanwhile, the rest of the GPU is idle."
        )
        yield Cause("serial tail", seen, cure, "times", None, every / (every - us))
        return
    run = evidence.largest
    for tail in run.launches if run is not None else ():
        looped = [each for each in tail.accesses if tail.programs == 1 and each.kind == "load" and each.count > 1]
        for load in looped:
            values = _written_for(load, evidence, [one for one in run.launches if one.programs > 1] if run else [])
            if values >= _TURNS * load.block > 0:
                seen = (
                    f"One program of `{tail.kernel}` reads {plural(values, 'value')}, {round(load.block):,} at a time, "
                    "while the rest of the GPU is idle."
                )
                yield Cause("serial tail", seen, cure, "accesses", load.line)
                return


def _written_for(load: Access, evidence: Evidence, launches: list[Launch]) -> int:
    """The values that launches with several programs write for a load, in a case of full size if that is known."""
    found = 0
    for launch in launches:
        stores = [each for each in launch.accesses if each.kind == "store" and each.of == load.of]
        programs = [code.programs or 0 for code in evidence.codes if code.line == launch.line]
        per_program = sum(each.elements for each in stores) / launch.programs
        found = max(found, round(per_program * max([launch.programs, *programs])))
    return found
