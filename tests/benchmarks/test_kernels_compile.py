"""NVRTC compiles the CUDA C++ that only a GPU machine runs, for the course's oldest GPUs and for Hopper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("cuda.bindings.nvrtc")
pytest.importorskip("torch.utils.cpp_extension")

from benchmarks import bytes as moving
from benchmarks import ceilings, reductions
from grader.explore.ladder.machine_code import nvrtc_view
from grader.explore.memory.bandwidth_experiments import EXPERIMENTS
from grader.explore.profiling import call_timing
from grader.worker.harnesses import ladder_kernels

GENERATIONS = (75, 90)


def _sources() -> Iterator[tuple[str, str]]:
    yield from ((name, source) for name, (source, _) in (moving._STEPS | moving.GREYS).items())
    yield from ((experiment.name, experiment.source) for experiment in EXPERIMENTS.values())
    yield "copy within L2", ceilings._CACHED
    yield "reading alone", reductions._READ.partition('extern "C"')[0]  # the rest is host code
    yield "busy", call_timing._BUSY.strip().replace("ROUNDS", "40000")
    for T, f in (("float", "f"), ("double", "")):
        yield f"ladder, {T}", ladder_kernels.SOURCE.substitute(T=T, f=f)


@pytest.mark.parametrize("capability", GENERATIONS)
@pytest.mark.parametrize(("name", "source"), list(_sources()), ids=[name for name, _ in _sources()])
def test_it_compiles_and_keeps_its_values_in_registers(name: str, source: str, capability: int) -> None:
    """A kernel that spills would time its own traffic. If one does not compile, a bench loses its rows."""
    view = nvrtc_view(source, capability=capability)
    assert view.registers, name
    assert view.spilled_bytes == 0, view.registers
