"""Hardware counters: the table that `ncu` prints, its sentences, and whether a model's number is confirmed."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from grader.authoring.stubs import solution
from grader.bottleneck import counters
from grader.bottleneck.counters import Counted, agreement, counted_in, measured
from grader.bottleneck.evidence import Access, Evidence, Launch, Run
from grader.exercises import find
from grader.explore.profiling import counted_call
from grader.verdict import Cause
from tests.slow.corpus import corpus

TRANSPOSE = find("transpose")
CASE = TRANSPOSE.timed_cases[-1]
_FIRST = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
          "Grid Size", "Device", "CC")  # fmt: skip
# Durations, registers and occupancy are those recorded on an H200; the sectors are what the access pattern implies.
_VALUES = {
    counters.TIME: "1,020,000", counters.DRAM_READ: "268,435,456", counters.DRAM_WRITTEN: "268,435,456",
    counters.SECTORS["load"]: "4", counters.SECTORS["store"]: "31.80", counters.OCCUPANCY: "74.71",
    counters.REGISTERS: "16", "launch__occupancy_limit_warps": "8", "launch__occupancy_limit_registers": "16",
    counters.TENSOR: "n/a",
}  # fmt: skip


def table(*rows: dict[str, str]) -> str:
    """A table in the form of `ncu --csv --page raw`, between lines of the program and of `ncu` itself."""
    file = io.StringIO()
    writer = csv.DictWriter(file, [*_FIRST, *_VALUES], quoting=csv.QUOTE_ALL, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerow({counters.TIME: "ns", counters.DRAM_READ: "byte", counters.DRAM_WRITTEN: "byte"})
    for number, row in enumerate(rows):
        writer.writerow({"ID": str(number), "Process Name": "python3.12"} | row)
    return f'==PROF== Connected to process 7\nprinted, with "quotes"\n{file.getvalue()}==PROF== Disconnected\n'


def test_the_longest_kernel_is_described_and_bytes_are_added_up() -> None:
    """A metric that the GPU lacks is left out."""
    short = _VALUES | {"Kernel Name": "fill", counters.TIME: "900", counters.REGISTERS: "99"}
    long = _VALUES | {"Kernel Name": "transpose_kernel(const float *, float *, int, int)"}
    counted = counted_in(table(short, long), CASE)
    assert counted is not None
    assert (counted.launches, counted.cut, counted.dram) == (2, False, 4 * 268_435_456)
    assert counted.values[counters.REGISTERS] == 16
    assert counters.TENSOR not in counted.values
    said = "\n".join(measured(TRANSPOSE, counted))
    assert "kernel is `transpose_kernel`" in said
    assert "Sectors of 32 bytes per store of a warp in global memory: 31.8 on average" in said
    assert "75% of the warps that an SM can hold; at most 8 blocks fit on an SM, because of its warps" in said
    assert "tensor" not in said
    assert counted_in("==ERROR== nothing\n", CASE) is None


@pytest.mark.parametrize(("sectors", "said"), [(31.8, "the counters agree"), (4.0, "do not confirm it")])
def test_a_model_is_compared_with_the_counters(sectors: float, said: str) -> None:
    """The sentence has both numbers."""
    store = Access("store", "out", 3, count=16, elements=16 * 256, bytes=16 * 1024, fetched=16 * 8192, idle=0)
    run = Run(CASE, (Launch("kernel", 2, (16,), 128, 1, accesses=(store,)),))
    cause = Cause("wasted sectors", "", "", "accesses")
    counted = Counted(CASE, "kernel", 1, {counters.SECTORS["store"]: sectors})
    (sentence,) = agreement(TRANSPOSE, [cause], [Evidence(simulated=True, runs=(run,))], counted)
    assert f"the model said 32.0 sectors per store, measured {sectors:.1f}" in sentence
    assert said in sentence


def test_a_refusal_says_who_can_allow_counters(monkeypatch: Any, tmp_path: Path) -> None:
    """Without a GPU or `ncu`, one sentence says that. An error of `ncu` is quoted."""
    evidence = [Evidence(simulated=False, runs=(Run(CASE, us=900.0),))]
    assert counted_call.count(TRANSPOSE, "", []) == counted_call._NOT_ON_GPU
    monkeypatch.setattr(counted_call, "nsight_compute", lambda: None)
    assert counted_call.count(TRANSPOSE, "", evidence) == counted_call._MISSING
    program = tmp_path / "ncu"
    monkeypatch.setattr(counted_call, "nsight_compute", lambda: program)
    for message, said in (("ERR_NVGPUCTRPERM - no permission", "administrator"), ("no device", "no device")):
        program.write_text(f"#!/bin/sh\necho '==ERROR== {message}'\nexit 1\n")
        program.chmod(0o755)
        assert said in str(counted_call.count(TRANSPOSE, "", evidence))


def test_ninja_is_found_next_to_python_whatever_the_path_is(monkeypatch: Any, tmp_path: Path) -> None:
    """JupyterLab may run from an environment that no shell has activated."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    printed = counted_call.run_ncu([], ["-c", "import os; print(os.environ['PATH'])"], tmp_path, 60)
    assert str(Path(sys.executable).parent) in printed.strip().split(":")


def test_inputs_are_laid_out_as_in_the_judge() -> None:
    """A row's padding is in the strides."""
    case = next(case for case in find("softmax").cases if any(array.row_padding for array in case.arrays))
    tensors = counted_call.inputs_of(find("softmax"), case, "cpu").values()
    for array, tensor in zip(case.arrays, tensors, strict=True):
        assert tuple(tensor.shape) == array.shape
        assert tensor.stride(0) == array.shape[1] + array.row_padding


@pytest.mark.gpu
@pytest.mark.timeout(900)
def test_counters_see_scattered_stores_and_the_bytes_of_a_reference() -> None:
    """At the end of a kernel, part of its output may still be in L2: the bytes can be fewer than must move."""
    slow = next(each for each in corpus() if each.name == "transpose/no_tile")
    evidence = [Evidence(simulated=False, runs=(Run(CASE, us=900.0),))]
    scattered = counted_call.count(TRANSPOSE, slow.source, evidence)
    if scattered in (counted_call._MISSING, counted_call._REFUSED):
        pytest.skip(str(scattered))
    assert isinstance(scattered, Counted), scattered
    assert scattered.values[counters.SECTORS["store"]] > 4, scattered
    add = find("vector_add")
    case = add.timed_cases[-1]
    counted = counted_call.count(add, solution("vector_add"), [Evidence(simulated=False, runs=(Run(case, us=90.0),))])
    assert isinstance(counted, Counted), counted
    assert counted.dram is not None, counted
    assert 0.8 <= counted.dram / add.bytes_moved(case) <= 1.5, counted
