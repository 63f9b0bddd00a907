"""The probe between two submissions: silent on a GPU that is well, one sentence on one that is not, and patient."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from grader.judge.gpu import health
from grader.judge.gpu.ceilings import Machine
from grader.judge.gpu.health import GpuProbe, probe, settled
from tests.pace import PACE

MACHINE = Machine("cuda", "NVIDIA H200", "580.95", "2.13.0", "3.7.1", "3.12.3", 60 << 20, 4200.0)
GIB = 1 << 30


class FakeGpu(GpuProbe):
    """A GPU that is well, but for what a test changes."""

    def __init__(self) -> None:
        self.asked = 0
        self.off_by = 0
        self.free = 100 * GIB
        self.gbps = [4100.0] * 7
        self.error: Exception | None = None
        self.well_from = 0  # the first probe that finds nothing wrong

    def sum_up(self) -> int:
        self.asked += 1
        if self.error is not None and not 0 < self.well_from <= self.asked:
            raise self.error
        return sum(3 * i + 1 for i in range(health._ELEMENTS)) + self.off_by

    def copy_seconds(self, size: int) -> list[float]:
        return [2 * size / gbps / 1e9 for gbps in self.gbps]

    def free_bytes(self) -> int:
        return self.free


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu()


def test_a_gpu_that_is_well_gives_no_sentence(gpu):
    """The right sum and a copy as fast as measured are all that is asked."""
    assert probe(MACHINE, gpu) == ""
    assert gpu.asked == 1


def test_in_the_simulator_nothing_is_asked(gpu):
    """Without a GPU there is nothing to probe."""
    gpu.error = RuntimeError("no CUDA")
    assert probe(replace(MACHINE, device="simulator"), gpu) == ""
    assert gpu.asked == 0


def test_a_wrong_sum_is_said(gpu):
    """A GPU that computes wrongly judges nobody."""
    gpu.off_by = 1
    assert "computes wrongly" in probe(MACHINE, gpu)


def test_a_third_of_the_bandwidth_is_enough_and_less_is_not(gpu):
    """The median counts: one slow copy does no harm, but a GPU shared with an endless kernel is found."""
    gpu.gbps = [1450.0] * 6 + [1.0]
    assert probe(MACHINE, gpu) == ""
    gpu.gbps = [1350.0] * 4 + [4100.0] * 3
    assert probe(MACHINE, gpu) == "The GPU is busy or slow: a copy reaches 1350 GB/s, not 4200 as before."


@pytest.mark.parametrize("error", [RuntimeError("CUDA error: an illegal memory access\nCompile with …"), RuntimeError(),
                                   TimeoutError("it did not answer within 10 s")])  # fmt: skip
def test_a_context_that_has_failed_is_one_sentence(gpu, error):
    """For any CUDA error the caller gets one line and no exception."""
    gpu.error = error
    said = probe(MACHINE, gpu)
    assert type(error).__name__ in said
    assert said.endswith(".")
    assert "\n" not in said


def test_settling_waits_for_what_is_dying(gpu):
    """A killed worker's kernels take a moment: the probe is repeated until it finds nothing, with pauses between."""
    gpu.error, gpu.well_from = RuntimeError("busy"), 4
    pauses: list[float] = []
    assert settled(MACHINE, 60.0, gpu, sleep=pauses.append) == ""
    assert gpu.asked == 4
    assert len(pauses) == 3
    assert min(pauses) > 0


def test_settling_that_is_not_needed_takes_one_probe(gpu):
    """On a GPU that is well nobody waits."""
    assert settled(MACHINE, 60.0, gpu, sleep=lambda seconds: pytest.fail("it waited")) == ""
    assert gpu.asked == 1


def test_settling_gives_up_in_time(gpu):
    """After the time limit it returns the problem."""
    gpu.error = RuntimeError("still there")
    start = time.monotonic()
    assert "still there" in settled(MACHINE, 0.2, gpu)
    assert 0.2 <= time.monotonic() - start < 30 * PACE
    assert gpu.asked >= 2


@pytest.mark.gpu
def test_a_real_gpu_is_well_and_quickly_asked():
    """The probe finds nothing wrong with an idle GPU, and costs milliseconds."""
    machine = Machine.measure("cuda")
    assert settled(machine) == ""
    taken = []
    for _ in range(9):
        start = time.perf_counter()
        assert probe(machine) == ""
        taken.append(time.perf_counter() - start)
    assert sorted(taken)[4] < 0.02, taken
