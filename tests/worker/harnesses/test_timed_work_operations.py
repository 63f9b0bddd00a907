"""An exercise's operations run as described."""

import pytest
import torch

from grader.worker.harnesses.timed_work import call_of


@pytest.fixture(autouse=True)
def ones(monkeypatch):
    """Ones in place of random numbers, so that the results are known."""
    monkeypatch.setattr(torch, "randn", torch.ones)


@pytest.mark.parametrize("kind", ["copy", "relu", "add", "sum", "convert", "add_row"])
def test_a_described_operation_runs(kind):
    """Each kind is the operation that its description says, on tensors of ones."""
    operation = {"kind": kind, "shape": [3, 5], "dtype": "float32", "to": "float16"}
    if kind != "convert":
        del operation["to"]
    found = call_of(operation, "cpu")()
    expected = {"sum": 15.0, "add": 2.0, "add_row": 2.0}.get(kind, 1.0)
    assert found.shape == (() if kind == "sum" else (3, 5))
    assert bool((found == expected).all())
    assert found.dtype == (torch.float16 if kind == "convert" else torch.float32)


@pytest.mark.parametrize("batch", [1, 4])
def test_a_described_matrix_product_runs(batch):
    """`batch` products of m × k and k × n."""
    found = call_of({"kind": "matmul", "batch": batch, "m": 2, "n": 3, "k": 5, "dtype": "float32"}, "cpu")()
    assert found.shape == ((2, 3) if batch == 1 else (4, 2, 3))
    assert bool((found == 5).all())
