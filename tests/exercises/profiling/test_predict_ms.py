"""The questions of `predict_ms`, in which each known mistake must show."""

from __future__ import annotations

import random

import pytest
import torch

from grader.exercises.profiling.predict_ms import PREDICT_MS, large_operations, milliseconds
from grader.judge.checking.compare import within
from grader.judge.gpu.ceilings import Machine
from grader.protocol.channel import from_bytes

GPU = Machine("cuda", "a GPU", "", "", "", "", 50 << 20, copy_gbps=4000, peak_tflops=600)
BUGS = (
    "gigaflops", "sum", "min", "reads only", "writes only", "elements", "always four bytes", "memory only",
    "arithmetic only", "no additions", "no batch", "one input", "whole row matrix", "same type", "sum writes all",
)  # fmt: skip


def _asked(case):
    return from_bytes(PREDICT_MS.draw(case, None, GPU)["question"])


@pytest.mark.parametrize("bug", BUGS)
def test_each_miscount_fails_in_each_drawing(bug):
    """For any draw, some answer exceeds the budget because of the miscount."""
    for _ in range(20):
        fails = False
        for case in PREDICT_MS.simulator_cases:
            asked = _asked(case)
            right, wrong = (torch.tensor([milliseconds(*one, b) for one in asked]).double() for b in ("", bug))
            fails |= not bool(within(wrong, right, PREDICT_MS.budget).all())
        assert fails


def test_the_last_question_is_the_first_on_a_machine_twice_as_fast():
    """This shows answers that do not depend on the machine."""
    (*_, (operation, fast)) = asked = _asked(PREDICT_MS.simulator_cases[0])
    assert operation == asked[0][0]
    assert fast["bandwidth_gbps"] == pytest.approx(2 * asked[0][1]["bandwidth_gbps"], rel=1e-3)
    assert fast["tflops"] == pytest.approx(2 * asked[0][1]["tflops"], rel=1e-3)


def test_on_a_gpu_its_own_ceilings_are_given_and_every_answer_is_named():
    """Questions about a real machine contain the measured ceilings; each output has a name."""
    (measured,) = (case for case in PREDICT_MS.cases if case.measured)
    asked = _asked(measured)
    assert all(machine == {"bandwidth_gbps": 4000, "tflops": 600} for _, machine in asked)
    for case in PREDICT_MS.cases:
        answers = case.outputs[0].shape[0]
        assert len(_asked(case)) == answers
        assert [operation["kind"] for operation, _ in _asked(case)][:5] == list(PREDICT_MS.answers[:5])


def test_what_is_timed_is_large_enough_for_any_cache_and_small_enough_for_any_gpu():
    """At least 256 MiB of traffic or 0.1 ms of arithmetic, and no tensor above 512 MiB."""
    for operation in large_operations(random.Random(3)):
        size = {"float16": 2, "float32": 4}[operation["dtype"]]
        if operation["kind"] == "matmul":
            assert 2 * operation["m"] * operation["n"] * operation["k"] > 1e11
        else:
            nbytes = size * operation["shape"][0] * operation["shape"][1]
            assert 256 << 20 <= nbytes <= 512 << 20


@pytest.mark.gpu
def test_on_this_gpu_the_roofline_is_near():
    """The ceilings of the judge's machine predict its measured times within the budget."""
    from grader.worker.harnesses.timed_work import time_on_gpu

    machine = Machine.measure("cuda")
    here = {"bandwidth_gbps": machine.copy_gbps, "tflops": machine.peak_tflops}
    for operation in large_operations(random.SystemRandom()):
        measured = time_on_gpu(operation)
        assert abs(milliseconds(operation, here) - measured) <= PREDICT_MS.budget.relative * measured, operation
