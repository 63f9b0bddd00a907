"""Causes in how a kernel uses memory: sectors, banks, repeated reads, elements that are masked out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from math import prod

from grader.bottleneck.cause import in_times
from grader.bottleneck.evidence import SECTOR_BYTES, WARP, Access, Evidence, Launch, Operation, Run
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural, time

__all__ = [
    "bank_conflicts", "extra_kernels", "extra_operations", "idle_elements", "no_grouped_order",
    "repeated_reads", "small_tiles", "stored_between", "wasted_sectors",
]  # fmt: skip

_WASTE = 2.0  # fetched bytes over those that are used
_SECTORS = 24  # a warp's access to this many or more is called scattered
_VECTOR = 4  # elements that a thread may access at once; each counts the sectors of all
_WAYS = 4  # lanes in one bank
_REPEATED = 1.25  # bytes moved over those that must be
_LONG_ROWS = ("softmax_long",)  # they do not fit into registers: one more read is needed
_BETWEEN = 1.8  # bytes moved over those that must be: a copy in between makes it 2
_STORES = 0.3  # of what a warp loads: a kernel that adds up stores less
_MUCH_WORK, _GROWS = 1.5, 0.7  # operations for an output in two cases; what is stored for it grows as they do
_SHARE = 0.05  # of the bytes that must be moved
_NOT_THE_LAST = 8  # programs: the last one may have an incomplete block
_REUSE, _ENOUGH_REUSE = 20.0, 64.0  # operations per loaded byte of a product, with small tiles and with large ones
_PER_READ = 0.6  # products per value read from shared memory: half of one if a thread computes one element
_REREAD = 0.75  # values read from global memory per product: one matrix has no tile
_LONG = 0.5  # of the time that the data take at a copy's bandwidth
_ORDERED = ("group", "swizzle")  # in a cell that orders its tiles
_TURNS = 16  # this many or more loads of a thread in one line are a loop
_LARGE = 50_000  # elements of a case; blocks that are made for large cases do not fit small ones
_IDLE = 0.6  # of the elements of a block


def wasted_sectors(evidence: Evidence) -> Iterator[Cause]:
    """A line whose warps touch more sectors than their elements fill."""
    run = evidence.largest_row_major
    if run is None:
        return
    yield from _of_blocks(run)
    for launch in run.launches:
        of_warp = [each for each in launch.warps if each.name == "global" and each.size]
        moved = sum(each.units * each.count for each in of_warp)
        needed = sum(min(each.units, each.needed) * each.count for each in of_warp)
        least = [max(_WASTE * each.needed, min(_SECTORS, _VECTOR * each.needed + 1)) for each in of_warp]
        bad = [each for each, units in zip(of_warp, least, strict=True) if each.units >= units]
        worst = max(bad, key=lambda each: (each.units - each.needed) * each.count, default=None)
        if worst is not None and needed:
            sectors = f"{plural(round(worst.units), 'sector')} of {SECTOR_BYTES} bytes"
            seen = f"A warp's {worst.kind} touches {sectors} where {worst.needed} would do."
            cure = "Let neighbouring threads use neighbouring elements"
            yield Cause("wasted sectors", seen, cure, "accesses", worst.line, moved / needed)


def _of_blocks(run: Run) -> Iterator[Cause]:
    every = [each for launch in run.launches for each in launch.accesses if each.kind != "atomic"]
    wide = [each for each in every if each.elements and each.bytes >= SECTOR_BYTES * max(1, each.count)]
    worst = max(wide, key=lambda each: each.fetched - each.bytes, default=None)
    if worst is None or worst.fetched < _WASTE * worst.bytes:
        return
    fetched, used = sum(each.fetched for each in every), sum(min(each.fetched, each.bytes) for each in every)
    needed = max(1, WARP * (worst.bytes // worst.elements) // SECTOR_BYTES)
    touched = min(WARP, round(needed * worst.fetched / worst.bytes))
    sectors = f"{plural(touched, 'sector')} of {SECTOR_BYTES} bytes"
    seen = f"A warp's {worst.kind} of `{worst.name}` touches {sectors} where {needed} would do."
    cure = "Let a block run along elements that are next to each other in memory"
    yield Cause("wasted sectors", seen, cure, "accesses", worst.line, fetched / used)


def bank_conflicts(evidence: Evidence) -> Iterator[Cause]:
    """A line whose lanes meet in one bank of shared memory."""
    run = evidence.largest
    of_warps = [each for launch in run.launches for each in launch.warps] if run is not None else []
    shared = [each for each in of_warps if each.name == "shared" and each.count]
    worst = max(shared, key=lambda each: each.units * each.count, default=None)
    if worst is None or worst.units < _WAYS:
        return
    turns = sum(each.units * each.count for each in shared)
    seen = f"{round(worst.units)} of the {WARP} threads of a warp use one bank of shared memory, and take turns."
    cure = "Pad each row of the tile by one element"
    yield Cause("bank conflicts", seen, cure, "accesses", worst.line, turns / sum(each.count for each in shared))


def repeated_reads(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A tensor that is read more than once, or written and read again.

    If arithmetic is the limit, tiles are read more than once, and only an output that is read back counts.
    """
    run = evidence.largest
    if run is None:
        return
    every = [each for launch in run.launches for each in launch.accesses]
    loads: dict[str, list[Access]] = defaultdict(list)
    for each in every:
        if each.kind == "load":
            loads[each.name].append(each)
    moved, must = _moved(run.launches), exercise.bytes_moved(run.case)
    name = max(loads, key=lambda each: sum(one.bytes for one in loads[each]), default="")
    elements = {array.name: prod(array.shape) for array in run.case.arrays}
    bound = exercise.limited_by == "memory"
    written = {each.name for each in every if each.kind == "store" and (bound or each.name in elements)}
    between = max((each for each in every if each.kind == "load" and each.name in written),
                  key=lambda each: each.bytes, default=None)  # fmt: skip
    ratio = moved / must if bound else 1 + (2 * between.bytes / must if between is not None else 0)
    if ratio < _REPEATED + (0.5 if exercise.id in _LONG_ROWS else 0) or not name:
        return
    times = sum(each.elements for each in loads[name]) / elements.get(name, moved)
    lines = sorted({each.line for each in loads[name] if each.line})
    where = f", in lines {', '.join(map(str, lines))}" if len(lines) > 1 else ""
    if between is not None and (not bound or times < _REPEATED):
        seen = f"`{between.name}` is written and then read again: {in_times(ratio)} as many bytes move as necessary."
        cure = "Do both steps in one kernel, so that the intermediate values stay in registers"
        yield Cause("extra traffic", seen, cure, "accesses", between.line, ratio)
    elif times >= _REPEATED:
        seen = f"Each element of `{name}` is read {_times(times)}{where}."
        cure = "Load each row or block once, and keep it in a variable"
        yield Cause("repeated reads", seen, cure, "accesses", lines[-1] if lines else None, ratio)


def _moved(launches: tuple[Launch, ...]) -> int:
    return sum(each.bytes for launch in launches for each in launch.accesses)


def _times(number: float) -> str:
    return f"{number:.0f} times" if abs(number - round(number)) < 0.05 else f"{number:.1f} times on average"


def extra_operations(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Operations of torch, next to the kernel, that move a good part of the data once more in a case of full size."""
    largest = evidence.largest
    runs = [run for run in evidence.runs if largest is not None and 2 * run.elements > largest.elements]
    if not runs or exercise.backend == "torch":
        return
    extra, must, large = max((_beside(exercise, run) for run in runs), key=lambda one: one[0] / max(1, one[1]))
    if not large:
        return
    named = ", ".join(dict.fromkeys(f"`{each.name}`" for each in large))
    where = "In addition to the kernel, torch" if any(run.launches for run in runs) else "Torch"
    seen = (
        f"{where}'s {named} {'moves' if len(large) == 1 else 'move'} {in_times(extra / must)} "
        "as many bytes as the exercise needs."
    )
    cure = "Do this work in the kernel, on the elements that it has already loaded"
    yield Cause("extra operations", seen, cure, "calls", max(large, key=lambda each: each.bytes).line, 1 + extra / must)


def _beside(exercise: Exercise, run: Run) -> tuple[int, int, list[Operation]]:
    """The bytes that operations move, those that must be moved, and the operations."""
    must = exercise.bytes_moved(run.case)
    large = [each for each in run.operations if each.line and each.bytes >= _SHARE * must]
    return sum(each.bytes for each in large), must, large


def extra_kernels(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Kernels of the submission, next to the main one, that take long enough to move the data once more."""
    run = evidence.largest
    if run is None or not evidence.copy_gbps or not evidence.kernels or _beside(exercise, run)[2]:
        return
    main = max(evidence.kernels, key=lambda kernel: kernel.us)
    least = exercise.bytes_moved(run.case) / evidence.copy_gbps / 1e3
    filling = [each for each in evidence.kernels if each.programs >= evidence.multiprocessors]  # others do not copy
    beside = [each for each in filling if each is not main and each.us >= _LONG * least]
    if not beside or exercise.backend == "torch":
        return
    names = ", ".join(f"`{each.name}`" for each in beside)
    seen = (
        f"In addition to `{main.name}`, {names} {'takes' if len(beside) == 1 else 'take'} "
        f"{time(sum(each.us for each in beside))}, compared with {time(least)} for moving all the data."
    )
    cure = "Do both steps in one kernel, so that the intermediate values stay in registers"
    ratio = evidence.kernels_us / (evidence.kernels_us - sum(each.us for each in beside))
    yield Cause("extra traffic", seen, cure, "times", None, ratio)


def stored_between(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Launches of CUDA C++, CuPy or Numba that store much more than the output has, for later launches to read.

    If arithmetic is the limit, partial sums are worth their bytes: then what is stored must grow as the operations do.
    """
    run = evidence.largest
    if run is None or sum(launch.count for launch in run.launches) < 2:
        return
    stored = {line: size for line, size in _stored(run).items() if size}
    made = sum(prod(array.shape) * int("".join(filter(str.isdigit, array.dtype))) // 8 for array in run.case.outputs)
    ratio = 1 + 2 * (sum(stored.values()) - made) / max(1, exercise.bytes_moved(run.case))
    if ratio < _BETWEEN or (exercise.limited_by != "memory" and not _grows_with_work(exercise, evidence)):
        return
    seen = f"Values go to memory and back between launches: {in_times(ratio)} as many bytes move as necessary."
    cure = "Do all steps in one kernel, so that the intermediate values stay in registers"
    bound = ratio if exercise.limited_by == "memory" else None
    yield Cause("extra traffic", seen, cure, "accesses", max(stored, key=lambda line: stored[line]) or None, bound)


def _grows_with_work(exercise: Exercise, evidence: Evidence) -> bool:
    """Whether more is stored for each output where an output takes more operations."""
    outputs = [sum(prod(array.shape) for array in each.case.outputs) for each in evidence.runs]
    work = [exercise.operations(each.case) / made for each, made in zip(evidence.runs, outputs, strict=True)]
    stored = [sum(_stored(each).values()) / made for each, made in zip(evidence.runs, outputs, strict=True)]
    most, least = work.index(max(work)), work.index(min(work))
    return work[most] >= _MUCH_WORK * work[least] and stored[most] * work[least] >= _GROWS * stored[least] * work[most]


def _stored(run: Run) -> dict[int, float]:
    """The bytes that full warps store, by line, in launches that store about as much as they load."""
    found: dict[int, float] = defaultdict(float)
    for launch in run.launches:
        if launch.programs < _NOT_THE_LAST:
            continue
        of_warp = [each for each in launch.warps if each.name == "global"]
        stores = [each for each in of_warp if each.kind == "store" and each.units >= each.needed]
        if sum(each.size * each.count for each in stores) < _STORES * sum(
            each.size * each.count for each in of_warp if each.kind == "load"
        ):
            continue
        working = launch.total / launch.most if launch.most else launch.programs  # blocks: others find no data
        for each in stores:
            found[each.line or 0] += each.size * each.count * working * launch.threads * launch.count
    return found


def idle_elements(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Blocks most of whose elements are masked out."""
    run = evidence.largest
    if run is None or exercise.limited_by != "memory" or run.elements < _LARGE:
        return
    many = [launch for launch in run.launches if launch.programs >= _NOT_THE_LAST]  # the last block is never full
    every = [each for launch in many for each in launch.accesses]
    worst = max(every, key=lambda each: each.idle, default=None)
    elements = sum(each.elements for each in every)
    if worst is None or not elements or worst.idle < _IDLE * (worst.idle + worst.elements):
        return
    seen = f"The mask leaves out {worst.idle / (worst.idle + worst.elements):.0%} of a block's elements."
    cure = "Choose a block that fits: `triton.next_power_of_2(columns)`, for example"
    yield Cause(
        "idle elements", seen, cure, "accesses", worst.line, (elements + sum(each.idle for each in every)) / elements
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
        seen = f"The kernel does only {plural(round(reuse), 'operation')} per loaded byte, because its tiles are small."
        cure = (
            "Give each program a larger tile, such as 128 × 128, so that each loaded element is used in more products"
        )
        yield Cause(
            "small tiles", seen, cure, "accesses", max(loads, key=lambda each: each.bytes).line, _ENOUGH_REUSE / reuse
        )
    for launch in run.launches:
        of_warp = [each for each in launch.warps if each.kind == "load"]
        reads = sum(each.count * max(1, each.size // 4) for each in of_warp if each.name == "shared")
        looped = [each for each in of_warp if each.count >= _TURNS]
        products = exercise.operations(run.case) / 2 / (launch.programs * max(1, launch.threads) * launch.count)
        fetched = sum(each.count * max(1, each.size // 4) for each in looped if each.name == "global")
        if looped and not reads:
            seen = "Each thread reads a whole row and column from global memory, and shares nothing with other threads."
            cure = "Copy tiles of both matrices to shared memory, and let the whole block use them"
            yield Cause("no tile", seen, cure, "accesses", looped[0].line)
        elif fetched >= _REREAD * products:
            of = plural(round(products), "product")
            seen = f"A thread reads {plural(fetched, 'value')} from global memory for its {of}."
            cure = "Copy tiles of both matrices to shared memory, so that each value read serves many products"
            line = max(looped, key=lambda each: (each.name == "global", each.count)).line
            yield Cause("repeated reads", seen, cure, "accesses", line)
        elif looped and products < _PER_READ * reads:
            seen = "Each product takes two reads of shared memory, because a thread computes one element of the result."
            cure = "Let each thread compute several elements, such as 4 × 4: each value read then serves 4 products"
            yield Cause(
                "small tiles",
                seen,
                cure,
                "accesses",
                max(looped, key=lambda each: (each.name == "shared", each.count)).line,
            )


def no_grouped_order(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    """A product on tensor cores that loses speed as the matrices outgrow the L2 cache."""
    run, code_of_cell = evidence.largest, re.sub("#.*", "", source).lower()
    if run is None or not exercise.id.startswith("matmul") or any(word in code_of_cell for word in _ORDERED):
        return
    codes = [launch.code for launch in run.launches if launch.code is not None and launch.code.tensor_cores]
    speeds = {each.case.name: exercise.operations(each.case) / each.us / 1e6 for each in evidence.runs if each.us}
    best = max(speeds, key=lambda name: speeds[name], default="")
    if not codes or run.case.name not in speeds or best == run.case.name:
        return
    seen = (
        f"The kernel does {speeds[run.case.name]:.0f} TFLOPS in the case “{run.case.name}”, but {speeds[best]:.0f} in "
        f"“{best}”: the tiles that one program loads do not stay in L2 for the next."
    )
    cure = (
        "Take the tiles in groups of a few rows, with `tl.swizzle2d` for example, so that programs share what is in L2"
    )
    yield Cause("no grouped order", seen, cure, "times", None, speeds[best] / speeds[run.case.name])
