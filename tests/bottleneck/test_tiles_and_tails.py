"""Causes in the tiles of an attention, in small programs of Triton, and at the end of a call."""

from __future__ import annotations

from typing import Any

import pytest

from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Evidence
from grader.exercises import find

_GPU = {"simulated": False, "gpu": "NVIDIA L4", "multiprocessors": 58, "copy_gbps": 260.0, "peak_tflops": 60.0}
_SIZE = 320 * 64  # elements of each array


def _access(kind: str, tensor: int, count: int, elements: int, idle: int = 0, width: int = 2) -> dict[str, Any]:
    size = {"elements": elements, "bytes": width * elements, "fetched": width * elements, "idle": idle}
    return {"kind": kind, "name": f"t{tensor}", "line": 10 + tensor, "count": count, "tensor": tensor} | size


def _launch(*accesses: dict[str, Any], grid: int = 64, **more: Any) -> dict[str, Any]:
    known = {"kernel": "kern", "line": 9, "grid": [grid, 1, 1], "threads": 128, "count": 1}
    return known | {"accesses": list(accesses)} | more


def _found(exercise: str, case: str, *launches: dict[str, Any], codes: Any = None, source: str = "") -> list[str]:
    run = {"case": case, "claim": {"launches": list(launches)}}
    evidence = Evidence.of_claims(find(exercise), {"simulated": True, "runs": [run], "codes": codes})
    return [cause.kind for cause in causes(find(exercise), source, evidence)]


_CAUSAL = "1 × 320 × 64, causal, one key far above the rest"


@pytest.mark.parametrize(
    ("tiles", "times", "case", "named"),
    [
        (3, 2.2, _CAUSAL, []),  # 128 queries and as many keys, up to the diagonal
        (5, 3.0, _CAUSAL, []),
        (3, 3.0, _CAUSAL, ["idle elements"]),
        (5, 5.0, _CAUSAL, ["idle elements"]),
        (5, 5.0, "1 × 640 × 64, equal scores, sums that pass 65,504", []),
        (20, 10.5, _CAUSAL, ["small tiles"]),
    ],
)
def test_tiles_of_an_attention(tiles: int, times: float, case: str, named: list[str]) -> None:
    """Tiles beyond the diagonal, and tiles of few queries, by how often each key is read."""
    size = _SIZE * (1 if case == _CAUSAL else 2)
    keys = [_access("load", each, 9, round(times * size)) for each in (2, 3)]
    launch = _launch(_access("load", 1, tiles, size), *keys, _access("store", 4, tiles, size))
    assert _found("attention", case, launch) == named


@pytest.mark.parametrize(("columns", "named"), [(320, True), (64, False)])
def test_scores_that_are_written_are_extra_traffic(columns: int, named: bool) -> None:
    """Parts of the outputs, from keys that are divided among programs, are not."""
    loads = [_access("load", each, 9, 3 * _SIZE) for each in (1, 2)]
    first = _launch(*loads, _access("store", 5, 25, 320 * columns, width=4))
    values = _access("load", 3, 9, 3 * _SIZE)
    second = _launch(_access("load", 5, 25, 320 * columns, width=4), values, _access("store", 4, 9, _SIZE), line=20)
    assert ("extra traffic" in _found("attention", _CAUSAL, first, second)) is named


@pytest.mark.parametrize(
    ("block", "programs", "named"), [(32, 262_144, True), (1024, 262_144, True), (32, 1056, False), (1024, 8192, False)]
)
def test_one_program_that_reads_many_sums_is_a_serial_tail(block: int, programs: int, named: bool) -> None:
    """As many as the first launch writes in a case of full size."""
    first = _launch(_access("load", 1, 391, 100_003, width=4), _access("store", 2, 391, 391, width=4), grid=391)
    tail = _launch(_access("load", 2, 13, 391, 13 * block - 391, width=4), _access("store", 3, 1, 1), grid=1, line=20)
    codes = [{"kernel": "kern", "line": 9, "programs": programs, "case": "67,108,864 elements"}]
    found = _found("mean_triton", "100,003 elements, one of them very large", first, tail, codes=codes)
    assert ("serial tail" in found) is named


@pytest.mark.parametrize(
    ("us", "blocks", "named"), [(900.0, 1, True), (2.0, 1, False), (900.0, 8, True), (900.0, 29, False)]
)
def test_on_a_gpu_a_kernel_of_few_blocks_is_a_serial_tail_by_its_time(us: float, blocks: int, named: bool) -> None:
    """It is not called a launch of few programs as well."""
    exercise = find("mean_triton")
    kernels = [{"name": "sums", "count": 1, "microseconds": 160.0, "grid": [4096], "block": [256]},
               {"name": "tail", "count": 1, "microseconds": us, "grid": [blocks], "block": [32]}]  # fmt: skip
    run = {"case": exercise.timed_cases[-1].name, "claim": {"us": 160.0 + us, "launches": []}}
    evidence = Evidence.of_claims(exercise, _GPU | {"runs": [run], "codes": [], "kernels": kernels})
    kinds = [cause.kind for cause in causes(exercise, "", evidence, headroom=6.0)]
    assert ("serial tail" in kinds) is named
    assert not named or "few programs" not in kinds


@pytest.mark.parametrize(
    ("programs", "other", "source", "named"),
    [(200, 200, "", True), (264, 264, "", False), (200, 4096, "", False), (200, 200, "multi_processor_count", False)],
)
def test_without_a_gpu_only_a_fixed_number_of_programs_has_a_last_wave(
    programs: int, other: int, source: str, named: bool
) -> None:
    """The simulator's cases are small, so a number that grows with them tells nothing."""
    codes = [{"kernel": "kern", "line": 9, "programs": other, "case": "8192 × 8192 × 8192", "tensor_cores": 4}]
    found = _found("matmul", "96 × 80 × 100", _launch(grid=programs), codes=codes, source=source)
    assert ("last wave" in found) is named


@pytest.mark.parametrize(
    ("block", "threads", "named"), [(128, 32, True), (32, 128, True), (1024, 32, False), (128, 64, False)]
)
def test_programs_of_one_warp_with_few_elements_are_small(block: int, threads: int, named: bool) -> None:
    """An SM holds 32 programs, whatever their size."""
    accesses = [_access(kind, number, 64, 64 * block, width=4) for number, kind in enumerate(("load", "store"), 1)]
    found = _found("widen", "3 × 1000", _launch(*accesses, threads=threads))
    assert ("small programs" in found) is named


@pytest.mark.parametrize(
    ("exercise", "shared", "kinds"),
    [("widen", 0, ["small programs"]), ("square_matrix", 0, ["small blocks"]), ("widen", 36_864, ["low occupancy"])],
)
def test_blocks_of_one_warp_are_named_in_the_words_of_the_language(
    exercise: str, shared: int, kinds: list[str]
) -> None:
    """Unless shared memory allows fewer blocks than an SM could hold."""
    chosen = find(exercise)
    launch = _launch(threads=32, grid=4096, code={"kernel": "kern", "registers": 32, "shared": shared})
    run = {"case": chosen.timed_cases[-1].name, "claim": {"us": 9000.0, "launches": [launch]}}
    evidence = Evidence.of_claims(chosen, _GPU | {"runs": [run], "codes": [], "kernels": []})
    assert [cause.kind for cause in causes(chosen, "", evidence, headroom=2.0)] == kinds


@pytest.mark.parametrize(("programs", "named"), [(32, True), (2, False)])
def test_a_product_that_many_programs_add_up_has_atomics(programs: int, named: bool) -> None:
    """By atomics per element of the output."""
    launch = _launch(_access("atomic", 3, programs, programs * 96 * 80, width=4))
    codes = [{"kernel": "kern", "tensor_cores": 4, "stages": 3}]
    assert ("atomics" in _found("matmul", "96 × 80 × 100", launch, codes=codes)) is named


@pytest.mark.parametrize(("fetched", "named"), [(2.0, True), (1.4, False)])
def test_half_of_each_sector_can_be_wasted(fetched: float, named: bool) -> None:
    """Rows of four elements, in a case of three rows."""
    load = _access("load", 1, 513, 6156, width=4)
    found = _found("widen", "3 × 2052, rows padded to 2060 and to 2068", _launch(
        load | {"fetched": round(fetched * load["bytes"])}))  # fmt: skip
    assert ("wasted sectors" in found) is named
