"""Causes in how a kernel uses memory: sectors, banks, repeated reads, atomics, elements that are masked out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod

from grader.bottleneck.cause import in_times
from grader.bottleneck.evidence import SECTOR_BYTES, WARP, Access, Evidence, Launch, Run
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural

__all__ = [
    "atomics",
    "bank_conflicts",
    "extra_operations",
    "idle_elements",
    "repeated_reads",
    "small_tiles",
    "wasted_sectors",
]

_WASTE = 2.0  # fetched bytes over those that are used
_SECTORS = 24  # of a warp's access, from which on it is called scattered
_WAYS = 4  # lanes in one bank
_REPEATED = 1.25  # bytes moved over those that must be
_LONG_ROWS = ("softmax_long",)  # they do not fit into registers: one more read is needed
_SHARE = 0.05  # of the bytes that must be moved
_PER_ATOMIC = 64  # elements: a warp or a program that adds up first needs fewer atomics
_NOT_THE_LAST = 8  # programs: the last one may have an incomplete block
_REUSE, _ENOUGH_REUSE = 20.0, 64.0  # operations per loaded byte of a product, with small tiles and with large ones
_TURNS = 16  # loads of a thread in one line, from which on it is a loop
_LARGE = 50_000  # elements of a case; blocks that are made for large cases do not fit small ones
_IDLE = 0.6  # of the elements of a block


def wasted_sectors(evidence: Evidence) -> Iterator[Cause]:
    """A line whose warps touch more sectors than their elements fill."""
    run = evidence.largest
    if run is None:
        return
    yield from _of_blocks(run)
    for launch in run.launches:
        of_warp = [each for each in launch.warps if each.name == "global" and each.size]
        moved = sum(each.units * each.count for each in of_warp)
        needed = sum(min(each.units, each.needed) * each.count for each in of_warp)
        bad = [each for each in of_warp if each.units >= max(_SECTORS, _WASTE * each.needed)]
        worst = max(bad, key=lambda each: (each.units - each.needed) * each.count, default=None)
        if worst is not None and needed:
            yield Cause(
                "wasted sectors",
                f"Each warp's {worst.kind} touches {plural(round(worst.units), 'sector')} of {SECTOR_BYTES} B where "
                f"{worst.needed} would do.",
                "Let neighbouring threads use neighbouring elements",
                "accesses",
                worst.line,
                moved / needed,
            )


def _of_blocks(run: Run) -> Iterator[Cause]:
    every = [each for launch in run.launches for each in launch.accesses if each.kind != "atomic"]
    wide = [each for each in every if each.bytes and each.elements >= WARP * max(1, each.count)]
    worst = max(wide, key=lambda each: each.fetched - each.bytes, default=None)
    if worst is None or worst.fetched < _WASTE * worst.bytes:
        return
    fetched, used = sum(each.fetched for each in every), sum(min(each.fetched, each.bytes) for each in every)
    item = worst.bytes // worst.elements
    needed = max(1, WARP * item // SECTOR_BYTES)
    touched = min(WARP, round(needed * worst.fetched / worst.bytes))
    yield Cause(
        "wasted sectors",
        f"Each warp's {worst.kind} touches {plural(touched, 'sector')} of `{worst.name}` where {needed} would do.",
        "Let a block run along elements that are next to each other in memory",
        "accesses",
        worst.line,
        fetched / used,
    )


def bank_conflicts(evidence: Evidence) -> Iterator[Cause]:
    """A line whose lanes meet in one bank of shared memory."""
    run = evidence.largest
    of_warps = [each for launch in run.launches for each in launch.warps] if run is not None else []
    shared = [each for each in of_warps if each.name == "shared" and each.count]
    worst = max(shared, key=lambda each: each.units * each.count, default=None)
    if worst is None or worst.units < _WAYS:
        return
    turns = sum(each.units * each.count for each in shared)
    yield Cause(
        "bank conflicts",
        f"{round(worst.units)} lanes of each warp's {worst.kind} meet in one bank of shared memory and take turns.",
        "Pad each row of the tile by one element",
        "accesses",
        worst.line,
        turns / sum(each.count for each in shared),
    )


def repeated_reads(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A tensor that is read more often than once, or written and read again, where moving bytes takes the time."""
    run = evidence.largest
    if run is None or exercise.limited_by != "memory":
        return
    every = [each for launch in run.launches for each in launch.accesses]
    loads: dict[str, list[Access]] = defaultdict(list)
    for each in every:
        if each.kind == "load":
            loads[each.name].append(each)
    moved, must = _moved(run.launches), exercise.bytes_moved(run.case)
    name = max(loads, key=lambda each: sum(one.bytes for one in loads[each]), default="")
    allowed = _REPEATED * must + (exercise.bytes_moved(run.case) / 2 if exercise.id in _LONG_ROWS else 0)
    if moved < allowed or not name:
        return
    elements = {array.name: prod(array.shape) for array in run.case.arrays}
    times = sum(each.elements for each in loads[name]) / elements.get(name, moved)
    lines = sorted({each.line for each in loads[name] if each.line})
    where = f", in lines {', '.join(map(str, lines))}" if len(lines) > 1 else ""
    written = {each.name for each in every if each.kind == "store"}
    between = max((each for each in every if each.kind == "load" and each.name in written),
                  key=lambda each: each.bytes, default=None)  # fmt: skip
    if times >= _REPEATED:
        yield Cause(
            "repeated reads",
            f"Each element of `{name}` is read {_times(times)}{where}.",
            "Keep a row or block in registers after the first read",
            "accesses",
            lines[-1] if lines else None,
            moved / must,
        )
    elif between is not None:
        yield Cause(
            "extra traffic",
            f"`{between.name}` is written and then read again: the kernels move {in_times(moved / must)} as many bytes "
            "as they must.",
            "Do both steps in one kernel, so that the intermediate values stay in registers",
            "accesses",
            between.line,
            moved / must,
        )


def _elements(run: Run) -> int:
    return sum(prod(array.shape) for array in run.case.arrays)


def _moved(launches: tuple[Launch, ...]) -> int:
    return sum(each.bytes for launch in launches for each in launch.accesses)


def _times(number: float) -> str:
    return f"{number:.0f} times" if abs(number - round(number)) < 0.05 else f"{number:.1f} times on average"


def extra_operations(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Operations of torch, next to the kernel, that move a good part of the data once more."""
    run = evidence.largest
    if run is None or exercise.backend == "torch":
        return
    must = exercise.bytes_moved(run.case)
    large = [each for each in run.operations if each.line and each.bytes >= _SHARE * must]
    if not large:
        return
    worst, extra = max(large, key=lambda each: each.bytes), sum(each.bytes for each in large)
    named = ", ".join(dict.fromkeys(f"`{each.name}`" for each in large))
    yield Cause(
        "extra operations",
        f"In addition to the kernel, torch's {named} {'moves' if len(large) == 1 else 'move'} {in_times(extra / must)} "
        "as many bytes as the exercise needs.",
        "Do this work in the kernel, on the elements that it has already loaded",
        "calls",
        worst.line,
        1 + extra / must,
    )


def atomics(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """An atomic for few elements."""
    run = evidence.largest
    if run is None or exercise.limited_by != "memory":
        return
    elements = sum(prod(array.shape) for array in run.case.inputs)
    for launch in run.launches:
        of_blocks = [each for each in launch.accesses if each.kind == "atomic"]
        count = launch.atomics or sum(each.elements for each in of_blocks)
        if count * _PER_ATOMIC > elements:
            each = elements / count
            yield Cause(
                "atomics",
                f"There is one atomic for {'each element' if each < 1.5 else f'every {each:.0f} elements'}, and "
                "atomics to the same address take turns.",
                "Add up within each block first, then use one atomic per block",
                "accesses",
                of_blocks[0].line if of_blocks else launch.line,
                _PER_ATOMIC / each if each >= 1 else float(_PER_ATOMIC),
            )
            return


def idle_elements(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Blocks most of whose elements are masked out."""
    run = evidence.largest
    if run is None or exercise.limited_by != "memory" or _elements(run) < _LARGE:
        return
    many = [launch for launch in run.launches if launch.programs >= _NOT_THE_LAST]  # the last block is never full
    every = [each for launch in many for each in launch.accesses]
    worst = max(every, key=lambda each: each.idle, default=None)
    elements = sum(each.elements for each in every)
    if worst is None or not elements or worst.idle < _IDLE * (worst.idle + worst.elements):
        return
    yield Cause(
        "idle elements",
        f"The mask leaves out {worst.idle / (worst.idle + worst.elements):.0%} of a block's elements.",
        "Choose a block that fits: `triton.next_power_of_2(columns)`, for example",
        "accesses",
        worst.line,
        (elements + sum(each.idle for each in every)) / elements,
    )


def small_tiles(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A product whose tiles are so small that each element is loaded many times, or that has no tiles."""
    run = evidence.largest
    if run is None or exercise.limited_by != "arithmetic" or not exercise.id.startswith("matmul"):
        return
    loads = [each for launch in run.launches for each in launch.accesses if each.kind == "load"]
    loaded = sum(each.bytes for each in loads)
    reuse = exercise.operations(run.case) / loaded if loaded else _ENOUGH_REUSE
    if reuse < _REUSE:
        yield Cause(
            "small tiles",
            f"The kernel does only {plural(round(reuse), 'operation')} per loaded byte, because its tiles are small.",
            "Give each program a larger tile, such as 128 × 128, so that each loaded element is used in more products",
            "accesses",
            max(loads, key=lambda each: each.bytes).line,
            _ENOUGH_REUSE / reuse,
        )
    warps = [each for launch in run.launches for each in launch.warps]
    looped = [each for each in warps if each.name == "global" and each.kind == "load" and each.count >= _TURNS]
    if looped and not any(each.name == "shared" for each in warps):
        yield Cause(
            "no tile",
            "Each thread reads a whole row and column from global memory, and shares nothing with the other threads.",
            "Copy tiles of both matrices to shared memory, and let the whole block use them",
            "accesses",
            looped[0].line,
        )
