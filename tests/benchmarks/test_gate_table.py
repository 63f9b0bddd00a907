"""The table of gates by GPU: the page is up to date, and the model agrees with what was measured."""

from dataclasses import replace

import pytest

from benchmarks import gate_table
from benchmarks.gate_table import GPUS, MODELS, PAGE
from grader.exercises import PACKAGED

BY_NAME = {gpu.name: gpu for gpu in GPUS}


def gate_of(exercise, baseline):
    return next(gate for gate in PACKAGED[exercise].gates if gate.baseline == baseline)


def test_the_page_has_the_table(tmp_path):
    """`python -m benchmarks.gate_table` writes it, and changes nothing if it is up to date."""
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    gate_table.rewrite(page)
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    assert gate_table.table() in page.read_text(encoding="utf-8")


def test_no_gate_that_was_passed_on_an_h100_is_out_of_reach_there():
    """The references earn all points there, so a "no" would be the model's error."""
    for exercise in PACKAGED.values():
        for gate in exercise.gates:
            assert gate_table.outcome(BY_NAME["H100 SXM"], exercise, gate).startswith(("yes", "close"))


def test_every_model_is_of_a_gate():
    """A gate that is renamed or removed takes its model with it."""
    assert all(gate_of(*key) for key in MODELS)


@pytest.mark.parametrize(("gpu", "said"), [("T4", "no"), ("A10", "yes")])
def test_triton_needs_a_gpu_with_tensor_cores_that_it_knows(gpu, said):
    """Without them a product is far from cuBLAS."""
    assert gate_table.outcome(BY_NAME[gpu], PACKAGED["matmul"], gate_of("matmul", "cublas")).startswith(said)


def test_a_case_that_does_not_fit_is_named():
    """A card with 1.5 GB has no room for buffers of this size."""
    small = replace(BY_NAME["T4"], memory_gb=1.5)
    assert gate_table.outcome(small, PACKAGED["vector_add"], gate_of("vector_add", "torch")) == "does not fit"


def test_a_higher_gate_is_further_away():
    """The outcome follows from the gate in the exercise, so a change of the gate changes the table."""
    gate = replace(gate_of("matmul", "cublas"), at_least=1.5)
    assert gate_table.outcome(BY_NAME["A10"], PACKAGED["matmul"], gate).startswith("no")
