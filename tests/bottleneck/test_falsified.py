"""Evidence that a submission falsified, or that comes from an unusual case: no exception, and no false cause."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest

from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Evidence
from grader.exercises import find

_LAUNCH: dict[str, Any] = {"kernel": "kern", "line": 9, "grid": [64, 1, 1], "threads": 256, "count": 1}
_LOADS = [{"kind": "load", "name": "k", "line": 5, "count": 1, "elements": 9, "tensor": each} for each in (1, 2, 3)]
_STORE = {"kind": "store", "name": "global", "line": 5, "units": 4.0, "size": 4, "count": 1}
_LOAD = {"kind": "load", "name": "global", "line": 5, "units": 4.0, "size": 4, "count": 99}
_LOOPS = [{"line": line, "lanes": 0xFF << 8 * line, "turns": 0} for line in (1, 2)]
_PLANNED = _LAUNCH | {"planned": True}
_NO_TIME = [{"name": name, "grid": [blocks, 1, 1], "microseconds": 0.0} for name, blocks in (("a", 999), ("b", 1))]


def _found(exercise: str, *launches: dict[str, Any], **claims: Any) -> list[str]:
    large = max(find(exercise).simulator_cases, key=lambda case: prod(case.arrays[0].shape))
    run = {"case": large.name, "claim": {"launches": [_LAUNCH | each for each in launches]}}
    every = {"simulated": True, "runs": [run], "codes": [], "multiprocessors": 132, **claims}
    return [each.kind for each in causes(find(exercise), "", Evidence.of_claims(find(exercise), every))]


@pytest.mark.parametrize(
    ("exercise", "launch", "claims"),
    [
        ("square_matrix", {}, {"codes": [_PLANNED | {"case": []}, _PLANNED | {"case": {}}]}),
        ("matmul_tiled", {"threads": 0, "warps": [_LOAD]}, {}),
        ("ls_stars", {"atomics": 10**6, "most": 99, "total": 10**6, "alone": 10**6 - 100}, {}),
        ("ls_open", {"partly": _LOOPS}, {}),
        ("attention", {"accesses": _LOADS}, {}),
        ("mean_triton", {}, {"kernels": _NO_TIME}),
    ],
    ids=["case", "threads", "no timed case", "no turns", "no bytes", "no time"],
)
def test_no_claim_ends_the_explanation(exercise: str, launch: dict[str, Any], claims: dict[str, Any]) -> None:
    _found(exercise, launch, **claims)


def test_blocks_that_find_no_data_store_nothing() -> None:
    """The grid of a loop over the data may be larger than a small case needs."""
    reset = {"line": 8, "grid": [1, 1, 1], "threads": 1}
    square = {"warps": [_STORE, _LOAD | {"count": 1}], "most": 2}
    all_work, few_work = ({"total": 2 * blocks} for blocks in (64, 13))
    assert "extra traffic" in _found("square_matrix", reset, square | all_work)
    assert "extra traffic" not in _found("square_matrix", reset, square | few_work)


def test_a_block_as_wide_as_a_small_case_is_not_partial() -> None:
    """In the timed case, the launch in this line has full warps."""
    case = find("square_matrix").timed_cases[-1].name
    full, same = (_PLANNED | {"case": case, "threads": threads} for threads in (256, 49))
    assert "partial warps" in _found("square_matrix", {"threads": 49}, codes=[same])
    assert "partial warps" not in _found("square_matrix", {"threads": 49}, codes=[full])
