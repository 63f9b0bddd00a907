"""Causes in how an attention is divided into tiles, counted in the simulator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from grader.bottleneck.cause import in_times
from grader.bottleneck.evidence import Access, Evidence
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural

__all__ = ["tiles_of_attention"]

_ATTENTION = "attention"
_LONG = 128  # keys; a shorter sequence is one tile
_LARGER = 2  # times as many values as an array has: more than the parts of a sequence that is divided into two
_REUSE = 20.0  # operations per loaded byte: as many as a tile has queries
_LEAST_TILES, _ALL = 3, 0.95  # of queries; of the keys. With two tiles, even good work reads most keys for both


def tiles_of_attention(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Scores that go through memory, tiles beyond the diagonal, and tiles of few queries."""
    run = evidence.largest
    if run is None or exercise.id != _ATTENTION:
        return
    heads, length, head = run.case.arrays[0].shape
    every = [each for launch in run.launches for each in launch.accesses]
    written = {each.of for each in every if each.kind == "store"}
    loads: dict[int | str, list[Access]] = defaultdict(list)
    for each in every:
        if each.kind == "load":
            loads[each.of].append(each)
    inputs = sorted((some for of, some in loads.items() if of not in written), key=_elements)
    if length < _LONG or len(inputs) < 3:
        return
    size, must = heads * length * head, exercise.bytes_moved(run.case)
    between = [of for of, some in loads.items() if of in written and _elements(some) > _LARGER * size]
    if between:
        worst = max((each for of in between for each in loads[of]), key=lambda each: each.bytes)
        ratio = 1 + sum(each.bytes for each in every if each.of in between) / must
        seen = (
            f"`{worst.name}` is written and then read again: {in_times(ratio)} as many bytes move as necessary, and "
            "more with longer sequences."
        )
        cure = "Keep each tile of scores in registers: one kernel with a running maximum and sum per query is enough"
        yield Cause("extra traffic", seen, cure, "accesses", worst.line)
    operations, all_operations = exercise.operations(run.case), 4 * heads * length**2 * head
    keys = inputs[-2]  # keys and values are read for each tile of queries, which are read once
    tiles = sum(each.count for each in every if each.kind == "store" and each.of not in loads) / heads
    line = max(keys, key=lambda each: each.bytes).line
    if operations < all_operations and tiles >= _LEAST_TILES and _elements(keys) >= _ALL * tiles * size:
        last = exercise.timed_cases[-1]
        (heads, length, head), operations = last.arrays[0].shape, all_operations
        seen = (
            "Each tile of queries takes all keys, although the causal mask hides half of the scores: they are computed "
            "and then left out."
        )
        cure = "End each program's loop over the keys at its last query"
        gain = 4 * heads * length**2 * head / exercise.operations(last)
        yield Cause("idle elements", seen, cure, "accesses", line, gain)
    reuse = operations / max(1, sum(each.bytes for some in inputs for each in some))
    if reuse < _REUSE:
        seen = (
            f"The kernel does only {plural(round(reuse), 'operation')} per loaded byte, because few queries share each "
            "key that a program loads."
        )
        cure = "Give each program a larger tile, such as 128 queries, and let it take 64 keys per step"
        yield Cause("small tiles", seen, cure, "accesses", line)


def _elements(accesses: list[Access]) -> int:
    return sum(each.elements for each in accesses)
