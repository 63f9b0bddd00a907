"""Causes in operations of torch that do the exercise's own work, one by one or in a graph that is compiled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from grader.bottleneck.cause import in_times
from grader.bottleneck.evidence import Evidence, Operation
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural

__all__ = ["double_precision", "extra_traffic", "sorting", "special_functions"]

_OF_SOLUTION = {"unblock": 5.0}  # the bytes that its operations move, over those that the exercise needs
_MORE = 1.5  # than the solution's
_LINES = 3  # that are named
_SHARE = 0.25  # of the bytes that must be moved
_SORTS = {"sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian", "quantile", "unique", "_unique2"}
_DOUBLES = 3  # results: a sum in float64 takes one conversion
_SPECIAL, _OF_TANH = {"fuse": 1}, 0.1  # functions that an exercise needs; the time of one more, about


def extra_traffic(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Operations on whole tensors that move much more than those of the course's solution."""
    run, needed = evidence.largest, _OF_SOLUTION.get(exercise.id)
    if run is None or run.launches or needed is None:
        return
    ratio = sum(each.bytes for each in run.operations) / max(1, exercise.bytes_moved(run.case))
    if ratio < _MORE * needed:
        return
    by_line: dict[int, list[Operation]] = defaultdict(list)
    for each in run.operations:
        if each.bytes >= _SHARE * exercise.bytes_moved(run.case):
            by_line[each.line or 0].append(each)
    most = sorted(by_line, key=lambda line: -sum(each.bytes for each in by_line[line]))[:_LINES]
    if not most:
        return
    places = "; ".join(f"{', '.join(f'`{each.name}`' for each in by_line[line])} in line {line}" for line in most)
    seen = (
        f"Operations of torch move {in_times(ratio)} as many bytes as the exercise needs; those of the course's "
        f"solution, {in_times(needed)}. Most are moved by {places}."
    )
    cure = (
        "Keep one value per row and let it broadcast, leave out copies, and work in place where you can, as `mul_` does"
    )
    yield Cause("extra traffic", seen, cure, "calls", most[0] or None, ratio / needed)


def sorting(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A sort, where the smallest and largest values would do."""
    run = evidence.largest
    if run is None or exercise.id not in _OF_SOLUTION:
        return
    for each in run.operations:
        if each.name in _SORTS and each.bytes >= _SHARE * exercise.bytes_moved(run.case):
            seen = f"`{each.name}` goes over the data many times and moves an index with each value."
            cure = "Ask only for what you need: `torch.aminmax` finds the smallest and largest value in one pass"
            yield Cause("extra operations", seen, cure, "calls", each.line)
            return


def double_precision(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Whole tensors in float64, although no array of the exercise is."""
    run = evidence.largest
    if exercise.backend != "torch" or run is None or any(array.dtype == "float64" for array in run.case.arrays):
        return
    whole = [each for each in run.operations if each.double >= exercise.bytes_moved(run.case) / 2 * each.count]
    count, line = max([(graph.double, graph.double_line) for graph in evidence.graphs]
                      + [(sum(each.count for each in whole), whole[0].line if whole else None)],
                      key=lambda one: one[0])  # fmt: skip
    if count >= _DOUBLES:
        seen = f"{count} operations compute whole tensors in double precision: twice the bytes, and slower arithmetic."
        yield Cause("double precision", seen, "Compute in float32", "calls", line)


def special_functions(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Functions of many instructions for each element, where fewer would do."""
    needed = _SPECIAL.get(exercise.id)
    most = max(evidence.graphs, key=lambda graph: graph.special, default=None)
    if needed is None or most is None or most.special < needed + 2:
        return
    functions = plural(most.special, "special function")
    seen = f"The graph computes {functions} for each element ({most.special_names}), where {needed} would do."
    cure = "Select signs with `torch.where` instead of computing powers, and use one `tanh` instead of its parts"
    yield Cause("special functions", seen, cure, "calls", most.special_line, 1 + _OF_TANH * (most.special - needed))
