"""Causes from evidence: each kind from its own facts, none without them, and never more than the headroom."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from grader.bottleneck.breakdown import breakdown
from grader.bottleneck.cause import gain, in_times, ranked, sentence
from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Evidence
from grader.bottleneck.explanation import explain, with_why
from grader.bottleneck.time_model import moved_again
from grader.exercises import find
from grader.feedback.report import explanation_as_html, explanation_as_text
from grader.verdict import Cause, Environment, Timing, Verdict

_LAUNCH: dict[str, Any] = {"kernel": "kern", "line": 9, "grid": [512, 1, 1], "threads": 256, "count": 1}
_WARP = {"kind": "load", "name": "global", "line": 5, "units": 4.0, "size": 4, "count": 1}
_CODE = {"kernel": "kern", "programs": 4096, "registers": 40, "spilled": 0, "load_4": 2}
_DOUBLES = {"float64": 18, "cycles": 260, "double_cycles": 130}
_ENTRY = "def {}(*arrays):\n    {}\n"


def _evidence(exercise: str, launch: dict[str, Any], code: dict[str, Any], *operations: dict[str, Any]) -> Evidence:
    """Evidence of one run of the exercise's largest simulator case."""
    case = max(find(exercise).simulator_cases, key=lambda case: case.arrays[0].shape)
    run = {"case": case.name, "claim": {"launches": [_LAUNCH | launch], "operations": list(operations)}}
    return Evidence.of_claims(find(exercise), {"simulated": True, "runs": [run], "codes": [_CODE | code]})


_EVEN = {"line": 7, "lanes": 0x55555555, "turns": 40}
_ODD = {"line": 9, "lanes": 0xAAAAAAAA, "turns": 40}
_COPY = {"name": "clone", "line": 12, "count": 1, "bytes": 10**9}


@pytest.mark.parametrize(
    ("kind", "exercise", "launch", "code", "operations"),
    [
        ("wasted sectors", "transpose", {"warps": [_WARP | {"units": 32.0}]}, {}, []),
        ("bank conflicts", "transpose", {"warps": [_WARP | {"name": "shared", "units": 32.0}]}, {}, []),
        ("small blocks", "square_matrix", {"threads": 32}, {}, []),
        ("partial warps", "square_matrix", {"threads": 100}, {}, []),
        ("many launches", "square_matrix", {"count": 200}, {}, []),
        ("few programs", "square_matrix", {}, {"programs": 16}, []),
        ("atomics", "mean_cuda", {"atomics": 10**6}, {}, []),
        ("atomics", "matmul_tiled", {"atomics": 10**6}, {}, []),
        ("divergence", "ls_open", {"partly": [_EVEN, _ODD]}, {"fast_sines": 2}, []),
        ("serial tail", "ls_cupy_typed", {"most": 400, "total": 400 * 512, "alone": 398 * 512}, {"fast_sines": 2}, []),
        ("extra operations", "square_matrix", {}, {}, [_COPY]),
        ("spills", "square_matrix", {}, {"spilled": 96}, []),
        ("no tensor cores", "matmul", {}, {}, []),
        ("spills", "square_matrix", {}, {"spilled": 0, "indexed": 128}, []),
        ("double precision", "ls_cupy_fastmath", {}, _DOUBLES | {"fast_sines": 2}, []),
        ("double precision", "matmul_tiled", {}, _DOUBLES, []),
        ("double precision", "square_matrix", {}, _DOUBLES | {"access_cycles": 72}, []),
        ("slow sines", "ls_cupy_fastmath", {}, {}, []),
        ("no pipelining", "matmul", {}, {"tensor_cores": 4, "stages": 1}, []),
        ("low occupancy", "square_matrix", {"threads": 64, "shared": 49_152}, {}, []),
        ("low occupancy", "grayscale", {"threads": 64}, {"registers": 255}, []),
        ("low occupancy", "ls_cupy_baseline", {"threads": 64, "shared": 49_152}, {"registers": 30}, []),
    ],
)
def test_each_cause_has_its_own_evidence(
    kind: str, exercise: str, launch: dict[str, Any], code: dict[str, Any], operations: list[dict[str, Any]]
) -> None:
    """Only this cause is found, and its sentence ends with what it rests on."""
    found = causes(find(exercise), "", _evidence(exercise, launch, code, *operations))
    assert [cause.kind for cause in found] == [kind]
    assert sentence(found[0]).endswith((").", "cell)."))


@pytest.mark.parametrize(
    ("exercise", "launch", "code"),
    [
        ("square_matrix", {}, {"indexed": 40}),  # of accurate sines in float64
        ("square_matrix", {}, {"float64": 9, "cycles": 165, "double_cycles": 261, "access_cycles": 1224}),  # a sum
        ("square_matrix", {}, {"float64": 8, "cycles": 77, "double_cycles": 16, "access_cycles": 36}),
        ("matmul_tiled", {}, {"float64": 16, "cycles": 260, "double_cycles": 16}),  # one sum for each tile
        ("mean_cuda", {}, _DOUBLES | {"double": True}),
        ("ls_cupy_baseline", {}, _DOUBLES),
        ("ls_cupy_baseline", {"threads": 64, "shared": 49_152}, {"registers": 128}),
        ("ls_cupy_baseline", {"threads": 128}, {"registers": 255}),
        ("matmul", {"threads": 128, "shared": 98_304}, {"registers": 60, "tensor_cores": 4}),
        ("square_matrix", {"threads": 128, "shared": 98_304}, {"registers": 32, "async_copies": 2}),
    ],
)
def test_compiled_code_that_need_not_be_slow_has_no_cause(
    exercise: str, launch: dict[str, Any], code: dict[str, Any]
) -> None:
    """Doubles that memory hides, few threads with many sums or with copies ahead, and small arrays."""
    assert causes(find(exercise), "", _evidence(exercise, launch, code)) == ()


def test_the_launch_that_does_most_of_the_work_tells_the_occupancy() -> None:
    """The kernel is found by its name among several."""
    small = _LAUNCH | {"kernel": "last", "grid": [1, 1, 1], "threads": 64, "shared": 49_152}
    codes = [_CODE | {"kernel": name} for name in ("kern", "last")]

    def found(*launches: dict[str, Any]) -> list[str]:
        case = find("square_matrix").simulator_cases[-1].name
        run = {"case": case, "claim": {"launches": [*launches], "operations": []}}
        evidence = Evidence.of_claims(find("square_matrix"), {"simulated": True, "runs": [run], "codes": codes})
        return [cause.kind for cause in causes(find("square_matrix"), "", evidence)]

    assert found(_LAUNCH, small) == []
    assert found(_LAUNCH | {"threads": 64, "shared": 49_152}, small) == ["low occupancy"]


_KERNEL = {"name": "kern", "count": 1, "microseconds": 900.0, "grid": [8, 1, 1], "block": [256, 1, 1]}
_GPU = {"simulated": False, "gpu": "NVIDIA L4", "multiprocessors": 58, "copy_gbps": 260.0, "peak_tflops": 60.0}


def _on_gpu(exercise: str, us: float, **kernel: Any) -> Evidence:
    """Evidence of one call on a GPU with 58 SMs, for the exercise's last timed case."""
    run = {"case": find(exercise).timed_cases[-1].name, "claim": {"us": us}}
    return Evidence.of_claims(find(exercise), _GPU | {"runs": [run], "codes": [], "kernels": [_KERNEL | kernel]})


def test_the_sms_are_those_of_the_gpu_that_is_here() -> None:
    """Without a GPU, an H100's are named; the line comes from the simulator."""
    alone = _evidence("square_matrix", {}, {"programs": 16})
    assert "the 132 SMs of an H100" in causes(find("square_matrix"), "", alone)[0].seen
    (cause,) = causes(find("square_matrix"), "", _on_gpu("square_matrix", 9000.0), alone)
    assert "8 blocks for the 58 SMs of this GPU" in cause.seen
    assert cause.line == 9


def test_the_evidence_of_a_gpu_names_what_a_kernel_takes() -> None:
    """Registers, shared memory, the occupancy by CUDA's calculator, and how long a good solution takes."""
    kernel = {"grid": [4096, 1, 1], "registers": 40, "shared": 4096, "occupancy_percent": 62.0}
    evidence = _on_gpu("square_matrix", 2400.0, **kernel)
    said = " ".join(explain(find("square_matrix"), "", evidence).seen)
    assert "`kern`, 4096 blocks of 256 threads; 40 registers per thread; 4096 bytes of shared memory per block" in said
    assert "an occupancy of 62 % by CUDA's calculator" in said
    assert "The course's own solution takes about 2.07 ms" in said  # 132 µs on an H200, whose copy is 16 times as fast


def test_few_threads_on_an_sm_are_named_with_what_limits_them() -> None:
    """If there is a GPU, the profiler tells the occupancy."""
    kernel = {"grid": [4096, 1, 1], "block": [64, 1, 1], "registers": 16, "shared": 50_000, "occupancy_percent": 12.5}
    (cause,) = causes(find("square_matrix"), "", _on_gpu("square_matrix", 9000.0, **kernel))
    assert cause.kind == "low occupancy"
    assert "Only 12% of the threads that an SM can hold fit on it, because of the shared memory" in cause.seen


def test_a_call_that_takes_longer_than_its_kernels_waits_for_the_host() -> None:
    """Only if nothing else explains it."""
    evidence = _on_gpu("square_matrix", 9000.0, grid=[4096, 1, 1], occupancy_percent=90.0)
    (cause,) = causes(find("square_matrix"), "", evidence)
    assert (cause.kind, cause.basis) == ("host time", "times")
    assert "The kernels of a call take 900 µs of its 9 ms" in cause.seen
    assert causes(find("square_matrix"), _ENTRY.format("square_matrix", "x.cpu()"), evidence)[0].kind != "host time"


def test_work_on_the_host_is_named_although_the_gpu_does_not_show_it() -> None:
    """A kernel that each call builds again, or looks for in a cache, while the GPU is busy."""
    evidence = _on_gpu("square_matrix", 2100.0, grid=[4096, 1, 1], occupancy_percent=90.0, microseconds=2090.0)
    source = _ENTRY.format("square_matrix", "built = load_inline('a', cuda_sources=source)")
    (cause,) = causes(find("square_matrix"), source, evidence)
    assert (cause.kind, cause.at_most) == ("built in each call", None)


def test_a_cap_below_what_fills_an_sm_only_spills() -> None:
    """The profiler tells the registers, the cell tells that they are capped."""
    evidence = _on_gpu("ls_numba_registers", 4600.0, grid=[2640, 1, 1], registers=24, microseconds=4500.0)
    (cause,) = causes(find("ls_numba_registers"), "@cuda.jit(max_registers=16)\n", evidence)
    assert cause.kind == "spills"
    assert "The cap leaves 24 registers per thread" in cause.seen
    assert all(one.kind != "spills" for one in causes(find("ls_numba_registers"), "@cuda.jit\n", evidence))


@pytest.mark.parametrize(
    ("exercise", "blocks", "named"),
    [("matmul", 70, True), ("matmul", 116, False), ("matmul", 59 * 8, False), ("square_matrix", 70, False)],
)
def test_blocks_that_leave_sms_idle_at_the_end_are_named(exercise: str, blocks: int, named: bool) -> None:
    """Only where arithmetic is the limit: blocks that wait for memory share it."""
    evidence = _on_gpu(exercise, 90_000.0, grid=[blocks, 1, 1], microseconds=89_000.0)
    found = [cause for cause in causes(find(exercise), "", evidence) if cause.kind == "last wave"]
    assert bool(found) is named
    if named:
        assert "70 blocks cannot be divided evenly among 58 SMs: some get 2, while the others get 1" in found[0].seen


def test_an_estimate_without_a_gpu_does_not_call_work_fast() -> None:
    """No cause was found, and nothing was timed."""
    found = _evidence("transpose", {"warps": [_WARP]}, {})
    said = " ".join(explanation_as_text(explain(find("transpose"), "", found)).split())
    assert "shows no cause of slowness. The speed was not compared with that of a good solution." in said


def test_slow_work_without_a_known_cause_is_said_to_be_slow() -> None:
    """It is four times slower than a good solution, and nothing explains it."""
    evidence = _on_gpu("square_matrix", 9000.0, grid=[4096, 1, 1], occupancy_percent=90.0, microseconds=8900.0)
    explanation = explain(find("square_matrix"), "", evidence)
    assert explanation.causes == ()
    assert "Yet a good solution is 4.3× as fast" in explanation_as_text(explanation)


@pytest.mark.parametrize("exercise", ["transpose", "square_matrix", "mean_cuda", "vector_add"])
def test_plain_evidence_supports_no_cause(exercise: str) -> None:
    """Neighbouring elements, full warps, many blocks, one launch."""
    evidence = _evidence(exercise, {"warps": [_WARP, _WARP | {"name": "shared", "units": 1.0}]}, {})
    assert causes(find(exercise), _ENTRY.format(exercise, "pass"), evidence) == ()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("torch.cuda.synchronize()", "waits for the GPU"),
        ("n = arrays[0].sum().item()", "waits for the GPU"),
        ("n = 1 if (arrays[0] > 0).any() else 0", "waits for the GPU"),
        ("n = float(arrays[1].max())", "waits for the GPU"),
        ("n = arrays[0].get()", "waits for the GPU"),
        ("tuned = triton.autotune(configs=[], key=[])(kernel)", "built in each call"),
        ("built = load_inline('a', cuda_sources=source)", "built in each call"),
    ],
)
def test_the_text_of_the_cell_tells(line: str, kind: str) -> None:
    """The cause is in the line that does it."""
    (found,) = causes(find("vector_add"), _ENTRY.format("vector_add", line))
    assert (found.kind, found.line, found.basis) == (kind, 2, "source")


def test_what_is_made_once_is_no_cause() -> None:
    """A cached function, an `if` and an `except` make it once, and so does what follows an `if` that returns it."""
    cached = "@cache\ndef library():\n    return load_inline('a', cuda_sources=source)\n"
    kept = "if made is None:\n        made = load_inline('a', cuda_sources=source)"
    assert causes(find("vector_add"), cached + _ENTRY.format("vector_add", "library()")) == ()
    assert causes(find("vector_add"), _ENTRY.format("vector_add", kept)) == ()
    returned = "if 'a' in made:\n        return made['a']\n    made['a'] = load_inline('a', cuda_sources=source)"
    caught = "try:\n        return made['a']\n    except KeyError:\n        made['a'] = load_inline('a')"
    for body in (returned, caught, "return made.get('a') or np.max(arrays[0].shape)"):
        assert causes(find("vector_add"), _ENTRY.format("vector_add", body)) == ()
    early = "if not arrays:\n        return\n    load_inline('a', cuda_sources=source)"
    assert [each.line for each in causes(find("vector_add"), _ENTRY.format("vector_add", early))] == [4]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cudaDeviceSynchronize();", "waits for the GPU"),
        ("if (threadIdx.x % (2 * step) == 0) s[threadIdx.x] += s[threadIdx.x + step];", "divergence"),
        ("__global__ void one() { for (;;) {} } __global__ void two() {} one<<<1, 1>>>();", "serial tail"),
    ],
)
def test_the_text_of_cuda_tells(text: str, kind: str) -> None:
    """Not in a comment, nor in a kernel without a loop."""
    assert [each.kind for each in causes(find("square_matrix"), f'source = """\n{text}\n"""')] == [kind]
    assert causes(find("square_matrix"), f'source = """\n// {text}\n"""') == ()
    assert causes(find("square_matrix"), 'source = """__global__ void one() {} one<<<1, 1>>>();"""') == ()


def test_no_cure_brings_more_than_the_headroom() -> None:
    """A kernel at half of what the hardware allows cannot become eight times as fast."""
    evidence = _evidence("transpose", {"warps": [_WARP | {"units": 32.0}]}, {})
    assert causes(find("transpose"), "", evidence)[0].at_most == 8.0
    assert causes(find("transpose"), "", evidence, headroom=2.0)[0].at_most == 2.0
    assert causes(find("transpose"), "", evidence, headroom=1.04) == ()


def test_two_causes_are_both_named_the_larger_first() -> None:
    """One of each kind; evidence that comes first counts."""
    evidence = _evidence("square_matrix", {"threads": 32, "count": 200}, {})
    assert [cause.kind for cause in causes(find("square_matrix"), "", evidence, evidence)] == [
        "many launches",
        "small blocks",
    ]


@pytest.mark.parametrize("claim", [None, 7, {"launches": 7}, {"launches": [7, {"grid": "x", "count": -1}]}])
def test_a_claim_that_cannot_be_read_is_no_evidence(claim: Any) -> None:
    """A worker may send anything."""
    claims = {"simulated": True, "runs": [{"case": "1,024 elements", "claim": claim}], "codes": claim}
    assert causes(find("vector_add"), "", Evidence.of_claims(find("vector_add"), claims)) == ()


def test_no_absurd_ratio_is_stated() -> None:
    """A tiny case can make one, such as a torch operation next to a kernel of a few bytes."""
    assert gain(Cause("atomics", "", "", "calls", None, 416_668.0, timed=True)) == "more than 100× faster"
    assert gain(Cause("atomics", "", "", "calls", None, 33.0, timed=True)) == "up to 33× faster"
    assert in_times(4.2e5) == "more than 100 times"
    assert in_times(0.999) == "1.0 times"
    assert in_times(2.54) == "2.5 times"


def test_the_time_without_a_kernel_is_the_hosts() -> None:
    """More launches in a larger case change nothing. Without the kernels' times it is not told from waiting."""
    exercise = find("square_matrix")
    case = exercise.timed_cases[-1]
    least = exercise.bytes_moved(case) / 260e3
    kernel = {"name": "square", "count": 4096, "microseconds": 3 * least}

    def parts(us: float, *kernels: dict[str, Any]) -> dict[str, float]:
        claims = _GPU | {"runs": [{"case": case.name, "claim": {"us": us}}], "codes": [], "kernels": [*kernels]}
        found = breakdown(exercise, "", Evidence.of_claims(exercise, claims))
        return {part.label: part.share for part in found.parts}

    assert parts(10 * least, kernel) == pytest.approx(
        {"bytes that must move": 0.1, "waiting": 0.2, "launches and the host": 0.7}
    )
    assert parts(2.5 * least, kernel) == pytest.approx({"bytes that must move": 0.4, "waiting": 0.6})
    assert parts(10 * least) == pytest.approx({"bytes that must move": 0.1, "launches and waiting": 0.9})
    assert parts(10 * least, kernel | {"microseconds": 0}) == parts(10 * least)


def test_bytes_that_torch_moves_count_as_well() -> None:
    """They are added to those of kernels, and count alone without any."""
    unblock = find("unblock")
    case = unblock.timed_cases[-1]
    operation = {"name": "sub", "line": 3, "count": 1, "bytes": 4 * unblock.bytes_moved(case)}
    run = {"case": case.name, "claim": {"launches": [], "operations": [operation]}}
    alone = Evidence.of_claims(unblock, {"simulated": True, "runs": [run], "codes": []})
    assert {part.label: part.share for part in breakdown(unblock, "", alone).parts} == {
        "must move": 0.25, "moved again": 0.75,
    }  # fmt: skip
    assert alone.largest is not None
    assert moved_again(unblock, alone.largest) == 4
    run["claim"] = {"launches": [], "operations": [operation | {"bytes": 200 * unblock.bytes_moved(case)}]}
    alone = Evidence.of_claims(unblock, {"simulated": True, "runs": [run], "codes": []})
    assert moved_again(unblock, alone.largest) == 200  # although so small a part of a bar is not shown
    transpose = find("transpose")
    copied = _evidence("transpose", {"warps": [_WARP | {"units": 8.0}]}, {}, _COPY)
    assert copied.largest is not None
    assert moved_again(transpose, copied.largest) == 2 + 10**9 / transpose.bytes_moved(copied.largest.case)


def test_a_verdict_is_explained_by_its_own_times_and_what_the_simulator_counts() -> None:
    """The extra bytes come out of the waiting. A line of the cell is cut off: the verdict is stored."""
    simulated = _evidence("transpose", {"warps": [_WARP | {"units": 32.0}, _WARP | {"line": 6}]}, {})
    exercise = find("transpose")
    case = exercise.timed_cases[-1]
    us = 8 * exercise.bytes_moved(case) / 4000e3
    timing = Timing(case.name, "submission", us, us, us, 500.0, 0.125, 7, 16)
    environment = Environment("cuda", copy_gbps=4000.0, peak_tflops=700.0)
    slow = Verdict("transpose", "", "failed", 3, 5, 5, "", environment, timings=(timing,))
    found = with_why(slow, "\n" * 4 + "store " * 50_000 + "\nload\n", simulated)
    assert found.breakdown is not None
    assert [(part.label, part.share) for part in found.breakdown.parts] == [
        ("bytes that must move", pytest.approx(0.125)),
        ("extra bytes", pytest.approx(0.125 * 3.5)),
        ("launches and waiting", pytest.approx(0.4375)),
    ]
    assert [(each.line, each.share) for each in found.breakdown.lines] == [
        (5, pytest.approx(32 / 36)),
        (6, pytest.approx(4 / 36)),
    ]
    assert len(json.dumps(found.to_dict())) < 5000
    assert [cause.kind for cause in found.causes] == ["wasted sectors"]


@pytest.mark.parametrize("exercise", ["matmul_leaky_relu", "softmax"])
def test_an_output_that_a_second_kernel_reads_back_is_extra_traffic(exercise: str) -> None:
    """If arithmetic is the limit, only an output counts: tiles of the inputs are read many times."""
    chosen = find(exercise)
    case = max(chosen.simulator_cases, key=lambda case: case.arrays[0].shape)
    (out,) = (array.name for array in case.arrays if array.role == "out")
    size = chosen.bytes_moved(case) // 2
    access = {"line": 9, "count": 1, "elements": size // 4, "bytes": size, "fetched": size, "idle": 0}
    first, back = access | {"kind": "store", "name": out}, access | {"kind": "load", "name": out, "line": 20}
    again = access | {"kind": "load", "name": chosen.timed_cases[0].arrays[0].name}

    def found(*accesses: dict[str, Any]) -> list[tuple[str, int | None]]:
        run = {"case": case.name, "claim": {"launches": [_LAUNCH | {"accesses": [each]} for each in accesses]}}
        evidence = Evidence.of_claims(chosen, {"simulated": True, "runs": [run], "codes": []})
        return [(each.kind, each.line) for each in causes(chosen, "", evidence) if each.kind == "extra traffic"]

    assert found(again, first, back, first) == [("extra traffic", 20)]
    assert found(again, first) == []


_FORGED = {"kind": "load", "name": "x", "line": 5}
_ONLY_MASKED = _FORGED | {"idle": 10**6}


@pytest.mark.parametrize("exercise", ["vector_add", "transpose", "softmax", "mean_cuda"])
@pytest.mark.parametrize(
    "launch",
    [
        {"accesses": [_FORGED]},
        {"accesses": [_FORGED | {"fetched": 10**9}]},
        {"accesses": [_FORGED | {"elements": 64}]},
        {"accesses": [_ONLY_MASKED]},
        {"warps": [_WARP | {"name": "shared", "units": 1e18, "count": 0}]},
        {"warps": [_WARP | {"units": 1e18, "count": 0}]},
    ],
)
def test_a_forged_count_of_zero_divides_nothing(exercise: str, launch: dict[str, Any]) -> None:
    """The judge's own process reads these claims of a submission, so none may end it."""
    chosen = find(exercise)
    run = {"case": chosen.timed_cases[-1].name, "claim": {"launches": [_LAUNCH | launch]}}
    evidence = Evidence.of_claims(chosen, {"simulated": True, "runs": [run], "codes": None})
    causes(chosen, "", evidence)
    explain(chosen, "", evidence)


def test_an_operation_that_moves_nothing_has_no_share() -> None:
    """If no line moves a byte, no line is shown."""
    evidence = _evidence("vector_add", {}, {}, {"name": "sleep", "line": 1, "count": 1, "bytes": 0})
    assert explain(find("vector_add"), "torch.sleep()\n", evidence).breakdown.lines == ()


@pytest.mark.parametrize("chain", ["[0]" * 900 + ".item()", "()" * 1200])
def test_a_text_that_is_nested_deeply_tells_nothing(chain: str) -> None:
    """Python compiles it, but putting it into words takes too many calls within calls."""
    assert causes(find("vector_add"), _ENTRY.format("vector_add", f"return lambda x: x{chain}")) == ()


def test_the_kernel_is_shown_below_the_ceilings_of_its_gpu() -> None:
    """As a picture with a text that says the same, and as text."""
    explanation = explain(find("square_matrix"), "", _on_gpu("square_matrix", 4000.0))
    assert explanation.roofline is not None
    assert explanation.roofline.share == pytest.approx(2 * 4 * 8192**2 / 260e3 / 4000)
    said = "At 0.12 operations per byte, memory is the limit of this GPU. The kernel reaches 52% of what"
    assert said in " ".join(explanation_as_text(explanation).split())
    assert f'aria-label="{said}' in explanation_as_html(explanation)
    assert explanation.to_dict()["roofline"]["copy_gbps"] == 260.0


def test_gains_of_several_causes_multiply_to_the_headroom() -> None:
    """Their own ratios only tell which is larger; one cause gets all of it, and both stay if it is small."""
    larger, other = Cause("extra traffic", "", "", "accesses", None, 4.0), Cause("spills", "", "", "code", None, 2.0)
    assert [one.at_most for one in ranked([other, larger], 8.0)] == pytest.approx([4.0, 2.0])
    assert [one.at_most for one in ranked([other, larger], 1.1)] == pytest.approx([1.1 ** (2 / 3), 1.1 ** (1 / 3)])
    assert ranked([larger, other], 1.02) == ()
    assert [one.at_most for one in ranked([other], 6.0)] == [pytest.approx(6.0)]
    assert ranked([other], None) == (other,)


def test_a_second_kernel_that_moves_the_data_again_is_extra_traffic() -> None:
    """It takes as long as the data take, and fills the GPU."""
    kernels = [_KERNEL | {"name": name, "microseconds": 2300.0, "grid": [4096, 1, 1]} for name in ("copy", "square")]
    evidence = _on_gpu("square_matrix", 4600.0)
    both = replace(evidence, kernels=Evidence.of_claims(find("square_matrix"), _GPU | {
        "runs": [], "codes": [], "kernels": kernels}).kernels)  # fmt: skip
    (cause,) = causes(find("square_matrix"), "", both)
    assert (cause.kind, cause.basis) == ("extra traffic", "times")
    tail = replace(both, kernels=(both.kernels[0], replace(both.kernels[1], grid=(8,))))
    assert all(one.kind != "extra traffic" for one in causes(find("square_matrix"), "", tail))


def test_a_product_that_loses_speed_with_size_has_no_grouped_order() -> None:
    """Unless the cell groups its tiles."""
    exercise = find("matmul")
    launch = _LAUNCH | {"code": _CODE | {"tensor_cores": 4, "stages": 3}}
    small, large = exercise.timed_cases[-2:]
    runs = [{"case": small.name, "claim": {"launches": [launch], "us": 5e2}},
            {"case": large.name, "claim": {"launches": [launch], "us": 5e3}}]  # fmt: skip
    evidence = Evidence.of_claims(exercise, _GPU | {"peak_tflops": 500.0, "runs": runs, "codes": [], "kernels": []})
    assert [one.kind for one in causes(exercise, "# no groups", evidence)] == ["no grouped order"]
    assert causes(exercise, "tl.swizzle2d(m, n, rows, columns, 8)", evidence) == ()


def test_only_a_measured_time_bounds_a_gain() -> None:
    """In the corpus, cures often gain more than the counts suggest: without a time, the gain is an estimate."""
    found = Cause("few programs", "", "", "calls", None, 8.25)
    assert gain(ranked([found])[0]) == "estimated 8.2× faster, not timed"
    assert gain(ranked([found], 95.0)[0]) == "up to 95× faster"
    assert gain(ranked([replace(found, at_most=1e6)])[0]) == "estimated more than 100× faster, not timed"


_SUMS = """
#define THREADS 256
#define WARPS 8
__global__ void sums(const float* x, float* out, int n) {{
    {}
}}
"""


@pytest.mark.parametrize(
    ("tail", "named"),
    [
        ("if (threadIdx.x == 0) {\n for (int k = 0; k < n; k++) *out += x[k];\n}", True),
        ("if (!threadIdx.x) for (int k = 0; k < gridDim.x; k++) *out += x[k];", True),
        ("if (threadIdx.x == 0) for (int k = 1; k < THREADS; k++) *out += x[k];", True),
        ("if (threadIdx.x == 0) for (int k = 1; k < WARPS; k++) *out += x[k];", False),
        ("if (threadIdx.x == 0) for (int k = 1; k < THREADS / 32; k++) *out += x[k];", False),
        ("if (threadIdx.x == 0) *out = 0;\n for (int k = threadIdx.x; k < n; k += 256) *out += x[k];", False),
    ],
)
def test_a_long_loop_of_thread_0_is_a_serial_tail(tail: str, named: bool) -> None:
    """A loop over the sums of a few warps is not."""
    found = causes(find("mean_cuda"), _SUMS.format(tail))
    assert [one.kind for one in found] == (["serial tail"] if named else [])


def test_the_longest_loop_of_thread_0_is_named() -> None:
    """One over all blocks takes longer than one over the threads of a block."""
    over = "if (threadIdx.x == 0) for (int k = 0; k < {}; k++) *out += x[k];"
    source = _SUMS.format("\n".join(over.format(bound) for bound in ("THREADS", "n", "blockDim.x")))
    assert causes(find("mean_cuda"), source)[0].line == 6


def test_the_cure_is_in_words_of_the_exercise() -> None:
    """Operations of torch have no grid in the cell, and Numba's arrays no `torch.where`."""
    many = {"name": "add", "line": 2, "count": 200, "bytes": 10}
    run = {"case": find("unblock").timed_cases[-1].name, "claim": {"operations": [many], "us": 9000.0}}
    evidence = Evidence.of_claims(
        find("unblock"), _GPU | {"runs": [run], "codes": [], "kernels": [_KERNEL | {"count": 480}]}
    )
    cause = next(one for one in causes(find("unblock"), "", evidence) if one.kind == "many launches")
    assert "grid" not in cause.cure
    (copied,) = causes(find("ls_numba_typed"), _ENTRY.format("ls_numba_typed", "x = arrays[0].copy_to_host()"))
    assert "torch" not in copied.cure
    assert "pass device arrays to the kernel" in copied.cure


def test_compiled_kernels_have_their_names_and_widths() -> None:
    """Mangled names tell a learner nothing."""
    code = {"kernel": "_Z16transpose_kernelPKfPfii", "programs": 16, "case": "8192 × 8192", "store_4": 3}
    evidence = _evidence("transpose", {}, code)
    said = " ".join(explain(find("transpose"), "", evidence).seen)
    assert "Compiled: `transpose_kernel`;" in said
    assert "stores per thread: 3 of 4 bytes" in said
    assert "16 blocks in the case “8192 × 8192” for the 132 SMs" in causes(find("transpose"), "", evidence)[0].seen


def test_a_transposed_case_makes_no_line_scattered() -> None:
    """No timed case is transposed: the accesses of the next largest case tell."""
    exercise = find("matmul")
    plain, turned = (next(case for case in exercise.simulator_cases if case.name.startswith(name))
                     for name in ("96 × 80 × 100", "96 × 112 × 80"))  # fmt: skip
    load = {"kind": "load", "name": "b", "line": 12, "count": 9, "elements": 9 * 64, "bytes": 9 * 128, "idle": 0}
    runs = [{"case": case.name, "claim": {"launches": [_LAUNCH | {"accesses": [load | {"fetched": fetched}]}]}}
            for case, fetched in ((plain, 9 * 128), (turned, 9 * 2048))]  # fmt: skip
    codes = [_CODE | {"tensor_cores": 4, "stages": 3}]
    evidence = Evidence.of_claims(exercise, {"simulated": True, "runs": runs, "codes": codes})
    assert all(one.kind != "wasted sectors" for one in causes(exercise, "", evidence))


def _of_torch(exercise: str, *operations: dict[str, Any], host: Any = (), codes: Any = ()) -> Evidence:
    """Evidence of one run without launches, in the exercise's largest simulator case."""
    case = max(find(exercise).simulator_cases, key=lambda case: case.arrays[0].shape)
    claim = {"launches": [], "operations": [*operations], "host": [*host]}
    claims = {"simulated": True, "runs": [{"case": case.name, "claim": claim}], "codes": [*codes]}
    return Evidence.of_claims(find(exercise), claims)


@pytest.mark.parametrize(
    ("kind", "exercise", "host"),
    [
        ("waits for the GPU", "unblock", {"kind": "waits", "name": ""}),
        ("built in each call", "ls_numba_cached", {"kind": "builds", "name": "power"}),
        ("built in each call", "vector_add", {"kind": "builds", "name": "add"}),
        ("host time", "ls_cupy_cached", {"kind": "asks", "name": "getDeviceProperties"}),
        ("", "ls_cupy_baseline", {"kind": "builds", "name": "RawModule"}),
        ("", "unblock", {"kind": "sings", "name": ""}),
    ],
)
def test_what_the_host_does_in_each_call_is_named(kind: str, exercise: str, host: dict[str, Any]) -> None:
    """With its line. The baseline of the ladder builds its kernel in each call on purpose."""
    found = causes(find(exercise), "", _of_torch(exercise, host=[host | {"line": 7, "count": 1}]))
    assert [(cause.kind, cause.line) for cause in found] == ([(kind, 7)] if kind else [])


def _operation(name: str, line: int, share: float, **more: int) -> dict[str, Any]:
    """An operation that moves so many times the bytes that `unblock` needs in its largest simulator case."""
    exercise = find("unblock")
    case = max(exercise.simulator_cases, key=lambda case: case.arrays[0].shape)
    return {"name": name, "line": line, "count": 1, "bytes": int(share * exercise.bytes_moved(case))} | more


def test_operations_that_move_more_than_the_solutions_are_named() -> None:
    """The largest are listed with their lines; not what the solution moves, nor a small sort."""
    usual = [_operation("sub", 9, 4.0), _operation("aminmax", 4, 1.0)]
    assert causes(find("unblock"), "", _of_torch("unblock", *usual, _operation("sort", 5, 0.01))) == ()
    (found,) = causes(find("unblock"), "", _of_torch("unblock", *usual, _operation("clone", 7, 5.0)))
    assert (found.kind, found.line, found.at_most) == ("extra traffic", 7, pytest.approx(2.0, rel=0.01))
    assert "`clone` in line 7; `sub` in line 9; `aminmax` in line 4." in found.seen
    (found,) = causes(find("unblock"), "", _of_torch("unblock", *usual, _operation("sort", 5, 1.5)))
    assert (found.kind, found.line) == ("extra operations", 5)


def test_many_bytes_without_a_cause_are_explained() -> None:
    """The bars would contradict the verdict otherwise."""
    evidence = _of_torch("unblock", _operation("sub", 9, 4.0))
    assert "each operation of torch reads and writes whole tensors" in explanation_as_text(
        explain(find("unblock"), "", evidence)
    )


@pytest.mark.parametrize(("results", "named"), [(2, False), (41, True)])
def test_whole_tensors_in_double_precision_are_named(results: int, named: bool) -> None:
    """In a captured graph or one by one; converting a tensor for one sum is allowed."""
    wanted = [("double precision", 7)] if named else []
    graph = {"captured": 1, "double_results": results, "double_line": 7}
    for exercise, evidence in (
        ("fuse", _of_torch("fuse", codes=[graph])),
        ("unblock", _of_torch("unblock", *[_operation("mul", 7, 0.6, double=10**6)] * results)),
    ):
        found = causes(find(exercise), "", evidence)
        assert [(cause.kind, cause.line) for cause in found if cause.kind == "double precision"] == wanted


@pytest.mark.parametrize(("special", "named"), [(1, False), (2, False), (3, True)])
def test_special_functions_beyond_the_one_that_is_needed_are_named(special: int, named: bool) -> None:
    """A second one costs too little to be sure."""
    graph = {"captured": 1, "special": special, "special_names": "sinh, cosh, pow", "special_line": 8}
    found = causes(find("fuse"), "", _of_torch("fuse", codes=[graph]))
    assert [(cause.kind, cause.line) for cause in found] == ([("special functions", 8)] if named else [])


def test_launches_that_run_long_on_every_sm_are_not_too_many() -> None:
    """Fewer launches could only save the time in between, here a hundredth."""
    kernels = {"count": 16, "microseconds": 2970.0, "occupancy_percent": 90.0}
    for blocks, kinds in ((4096, []), (8, ["many launches"])):
        evidence = _on_gpu("square_matrix", 3000.0, grid=[blocks, 1, 1], **kernels)
        found = causes(find("square_matrix"), "", evidence, headroom=8.0)
        assert [cause.kind for cause in found if cause.kind == "many launches"] == kinds


def test_what_one_launch_stores_for_the_next_is_extra_traffic() -> None:
    """Partial sums are less than what is loaded, and idle threads store nothing."""
    exercise = find("square_matrix")
    case = max(exercise.simulator_cases, key=exercise.bytes_moved)
    blocks = exercise.bytes_moved(case) // 8 // 256 + 1
    store = _WARP | {"kind": "store", "line": 6}

    def found(launch: dict[str, Any], *launches: dict[str, Any]) -> list[tuple[str, int | None]]:
        claim = {"launches": [_LAUNCH | {"grid": [blocks, 1, 1]} | each for each in (launch, *launches)]}
        claims = {"simulated": True, "runs": [{"case": case.name, "claim": claim}], "codes": []}
        return [(cause.kind, cause.line) for cause in causes(exercise, "", Evidence.of_claims(exercise, claims))]

    whole = {"warps": [_WARP, store]}
    assert found(whole, whole) == [("extra traffic", 6)]
    assert found(whole) == []
    assert found(whole, {"warps": [_WARP | {"count": 16}, store]}) == []
    assert found(whole, whole | {"grid": [1, 1, 1]}) == []
