"""Causes in how work is divided: serial tails, divergence, atomics, launches of the timed case, calls that wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Evidence
from grader.exercises import find
from tests.bottleneck.test_diagnosis import _EVEN, _GPU, _KERNEL, _LAUNCH, _ODD, _WARP, _evidence, _on_gpu


@pytest.mark.parametrize(
    ("exercise", "launch"),
    [
        ("matmul_tiled", {"atomics": 100}),  # one split in two
        ("ls_open", {"partly": [_EVEN, _ODD | {"lanes": 0xFFFFFFFF}]}),  # a loop of all lanes
        ("ls_open", {"partly": [_EVEN, _ODD | {"lanes": 2}]}),  # the end of a row
        ("ls_cupy_typed", {"most": 40, "total": 40 * 512, "alone": 8 * 512}),  # the sums of a few warps
        ("ls_cupy_typed", {"most": 400, "total": 400 * 512, "alone": 0}),  # all warps do as much
        ("ls_cupy_typed", {"most": 400, "total": 400 * 512, "alone": 400 * 512}),  # others have nothing to do
    ],
)
def test_work_that_is_divided_well_has_no_such_cause(exercise: str, launch: dict[str, Any]) -> None:
    """Few atomics, loops of all lanes, and threads that do as much as others."""
    evidence = _evidence(exercise, launch, {"fast_sines": 2, "tensor_cores": 1})
    assert causes(find(exercise), "", evidence) == ()


def _two_runs(exercise: str, planned: int, *launches: list[dict[str, Any]]) -> Evidence:
    """Evidence of two simulated runs, with `planned` blocks at line 9 and one at line 10 in the timed case."""
    cases = [case for case in find(exercise).simulator_cases if "elements" in case.name]
    small, large = cases[0], max(cases, key=lambda case: case.arrays[0].shape)
    runs = [{"case": case.name, "claim": {"launches": [_LAUNCH | each for each in several]}}
            for case, several in zip((small, large), launches, strict=True)]  # fmt: skip
    case = find(exercise).timed_cases[-1].name
    codes = [_LAUNCH | {"planned": True, "case": case, "line": line, "grid": [blocks, 1, 1]}
             for line, blocks in ((9, planned), (10, 1))]  # fmt: skip
    return Evidence.of_claims(find(exercise), {"simulated": True, "runs": runs, "codes": codes})


def _sums(blocks: int, most: int) -> list[dict[str, Any]]:
    return [{"grid": [blocks, 1, 1], "most": 10, "total": 10 * blocks, "alone": 0},
            {"line": 10, "grid": [1, 1, 1], "threads": 32, "most": most, "total": most}]  # fmt: skip


@pytest.mark.parametrize(("planned", "named"), [(262_144, True), (1024, False)])
def test_a_block_that_adds_up_the_sums_of_all_others_is_a_serial_tail(planned: int, named: bool) -> None:
    """If in the timed case so many blocks leave sums that adding them up takes as long as a good solution."""
    evidence = _two_runs("mean_cuda", planned, _sums(4, 2), _sums(391, 14))
    found = causes(find("mean_cuda"), "", evidence)
    assert [one.kind for one in found] == (["serial tail"] if named else [])
    if named:
        assert (found[0].line, found[0].at_most) == (10, pytest.approx(8.0, abs=1.0))
    as_before = _two_runs("mean_cuda", planned, _sums(4, 14), _sums(391, 14))
    assert causes(find("mean_cuda"), "", as_before) == ()


def test_launches_are_counted_in_the_timed_case() -> None:
    """A small case makes only one."""
    evidence = _two_runs("mean_cuda", 512, _sums(4, 2), _sums(391, 2))
    assert evidence.planned is not None
    launch = replace(evidence.planned.launches[0], count=1024)
    often = replace(evidence, planned=replace(evidence.planned, launches=(launch,)))
    (cause,) = causes(find("mean_cuda"), "", often)
    assert cause.kind == "many launches"
    assert f"1024 times in the case “{evidence.planned.case.name}”" in cause.seen
    assert causes(find("mean_cuda"), "", evidence) == ()


def test_calls_of_the_runtime_that_wait_are_named() -> None:
    """Memory that each call allocates and frees."""
    case = find("square_matrix").simulator_cases[-1].name
    waits = [{"name": "cudaMalloc", "line": 4}, {"name": "cudaFree", "line": 6}]
    run = {"case": case, "claim": {"launches": [_LAUNCH], "waits": waits}}
    claims = {"simulated": True, "runs": [run], "codes": []}
    (cause,) = causes(find("square_matrix"), "", Evidence.of_claims(find("square_matrix"), claims))
    assert (cause.kind, cause.line) == ("waits for the GPU", 4)
    assert "`cudaMalloc`, `cudaFree`" in cause.seen


def test_a_matrix_that_is_read_from_global_memory_for_each_product_is_read_again() -> None:
    """Although the other one is in shared memory."""
    case = max(find("matmul_tiled").simulator_cases, key=lambda case: case.arrays[0].shape)
    products = find("matmul_tiled").operations(case) // 2 // (512 * 256)
    reads = [_WARP | {"name": name, "units": 4.0 if name == "global" else 1.0, "count": max(16, products)}
             for name in ("shared", "global")]  # fmt: skip
    found = causes(find("matmul_tiled"), "", _evidence("matmul_tiled", {"warps": reads}, {}))
    assert [one.kind for one in found] == ["repeated reads"]


def test_a_small_kernel_after_one_that_fills_the_gpu_is_a_serial_tail() -> None:
    """Unless torch's operations ran, which fill the GPU as well."""
    kernels = [_KERNEL, _KERNEL | {"name": "first", "microseconds": 100.0, "grid": [4096, 1, 1]}]
    evidence = _on_gpu("mean_cuda", 9000.0)
    of_gpu = Evidence.of_claims(find("mean_cuda"), _GPU | {"runs": [], "codes": [], "kernels": kernels}).kernels
    (cause,) = causes(find("mean_cuda"), "", replace(evidence, kernels=of_gpu))
    assert cause.kind == "serial tail"
    assert "`kern` runs in 8 blocks" in cause.seen
    assert [one.kind for one in causes(find("mean_cuda"), "", evidence)] == ["few programs"]


@pytest.mark.parametrize(("small", "named"), [(30_000, False), (40, True)])
def test_a_fixed_grid_has_as_many_atomics_in_the_timed_case(small: int, named: bool) -> None:
    """They are too many for the small case, but few for a large one; a grid that grows has more of both."""
    evidence = _two_runs("mean_cuda", 4096, [{"atomics": small}], [{"atomics": 30_000}])
    assert ("atomics" in [cause.kind for cause in causes(find("mean_cuda"), "", evidence)]) is named
