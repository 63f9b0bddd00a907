"""Tensors that a submission with CUDA C++ makes have guards, and libraries know them by the call that made them."""

from __future__ import annotations

import gc
import linecache
from typing import Any

import pytest

from grader.worker.simulator import cuda_library, devices, scratch

torch = pytest.importorskip("torch")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run one expression as a line of `submission.py`, and return its value."""
    monkeypatch.setattr(scratch, "_watches", [True])

    def evaluate(expression: str) -> Any:
        source = f"value = {expression}\n"
        monkeypatch.setitem(linecache.cache, "/submission.py", (len(source), None, [source], "/submission.py"))
        x = torch.arange(6.0).reshape(2, 3)
        space = {"torch": torch, "x": x}
        scratch._call.cache_clear()
        with devices.watching(x):
            exec(compile(source, "/submission.py", "exec"), space)
        return space["value"]

    return evaluate


def names() -> list[str]:
    return [buffer.name.decode() for buffer in cuda_library._scratch]


@pytest.mark.parametrize(
    ("expression", "value"),
    [("torch.zeros(4, device=x.device)", 0.0), ("torch.full_like(x, 7)", 7.0), ("x.new_ones(3, dtype=torch.int32)", 1)],
)
def test_a_tensor_has_its_values_and_the_name_of_its_call(made: Any, expression: str, value: float) -> None:
    """Its memory begins where a GPU's would, and its storage ends with it. When it is gone, its name is, too."""
    tensor = made(expression)
    assert (tensor == value).all()
    assert (tensor.data_ptr() % 256, tensor.storage_offset()) == (0, 0)
    assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    assert names() == [expression]
    del tensor
    gc.collect()
    assert names() == []


def test_a_tensor_that_is_passed_as_out_keeps_its_memory(made: Any) -> None:
    """It may be an output of the submission, whose memory is the judge's."""
    tensor, address, result = made("[y := x.clone(), y.data_ptr(), torch.zeros(x.shape, out=y)]")
    assert result is tensor
    assert tensor.data_ptr() == address
    assert not tensor.any()
    assert names() == []


def test_empty_memory_is_nan(made: Any) -> None:
    """A sum in memory that nobody has set to 0 is not right by chance."""
    assert made("torch.empty(5, dtype=torch.float64, device=x.device)").isnan().all()


@pytest.mark.parametrize(
    "expression", ["torch.zeros(4)", "torch.zeros(4, device='cpu')", "torch.zeros(0, device=x.device)"]
)
def test_a_tensor_of_the_host_or_without_memory_has_no_name(made: Any, expression: str) -> None:
    """A tensor without a device is the host's."""
    tensor = made(expression)
    assert names() == []
    assert tensor.storage_offset() == 0
