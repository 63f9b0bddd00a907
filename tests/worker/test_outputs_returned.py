"""A submission's result reaches the judge's buffer by one copy that cannot be avoided."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader.worker import outputs
from grader.worker.outputs import NotATensor, copy_out


class Lazy(torch.Tensor):
    """It computes when it is copied."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError("nobody is to ask it for anything")


def _fresh() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(12.0).view(3, 4), torch.full((3, 4), torch.nan)


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        lambda x: x.t().contiguous().t(),
        lambda x: x.new_zeros(3, 8)[:, ::2].copy_(x),
        lambda x: torch._neg_view(-x),
        lambda x: x[:1].expand(3, 4),
    ],
    ids=["plain", "transposed", "apart", "negated later", "expanded"],
)
@pytest.mark.parametrize("padded", [False, True])
def test_a_plain_tensor_is_copied_however_it_lies_in_memory(form: Any, padded: bool) -> None:
    """A result may have any strides, gaps, and a pending negation."""
    x, out = _fresh()
    if padded:
        out = torch.full((3, 7), torch.nan)[:, :4]
    copy_out(form(x), out)
    assert torch.equal(out, form(x))


@pytest.mark.parametrize(
    "place",
    [
        lambda out: out,
        lambda out: out.view(-1).view(3, 4),
        lambda out: torch.frombuffer(out.numpy(), dtype=torch.float32).view(3, 4),
        lambda out: out.detach(),
    ],
    ids=["itself", "a view", "other memory's name", "detached"],
)
def test_a_result_in_the_arbiters_buffer_is_refused(place: Any) -> None:
    """There would be nothing to copy, however the function got the buffer."""
    _, out = _fresh()
    with pytest.raises(NotATensor, match="own buffer"):
        copy_out(place(out), out)


def test_a_result_that_overlaps_the_buffer_is_refused() -> None:
    """One element at either end is enough."""
    memory = torch.zeros(36)
    for at in (1, 12, 23):
        with pytest.raises(NotATensor, match="own buffer"):
            copy_out(memory[at : at + 12].view(3, 4), memory[12:24].view(3, 4))
    for at in (0, 24):
        copy_out(memory[at : at + 12].view(3, 4), memory[12:24].view(3, 4))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda x: x.as_subclass(Lazy), "not its subclass Lazy"),
        (lambda x: torch.nn.Parameter(x), "not its subclass Parameter"),
        (lambda x: x.numpy(), "not ndarray"),
        (lambda x: x.half(), "torch.float16"),
        (lambda x: x[:1], "the shape"),
        (lambda x: x.to("meta"), "on meta"),
        (lambda x: x.to_sparse(), "layout"),
    ],
)
def test_anything_but_a_plain_tensor_is_refused_unread(result: Any, words: str) -> None:
    """A copy would convert types and broadcast shapes, and a subclass can do anything."""
    x, out = _fresh()
    with pytest.raises(NotATensor, match=words):
        copy_out(result(x), out)
    assert out.isnan().all()


def test_an_output_that_was_made_a_subclass_is_not_written() -> None:
    """Work that the function left for later is not done either."""
    x, out = _fresh()
    out.__class__ = Lazy
    with pytest.raises(NotATensor, match="changed how torch"):
        copy_out(x, out)


@pytest.mark.parametrize("mode", [TorchFunctionMode, TorchDispatchMode])
def test_a_mode_that_is_left_on_is_refused(mode: Any) -> None:
    """It would intercept every operation, including the copy."""
    x, out = _fresh()
    with mode(), pytest.raises(NotATensor, match="changed how torch"):
        copy_out(x, out)


def test_methods_of_torch_that_were_replaced_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """The originals are bound before there is a submission."""
    x, out = _fresh()
    for name in ("copy_", "data_ptr", "is_contiguous"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_: 1 << 40, raising=False)
    with pytest.raises(NotATensor, match="own buffer"):
        copy_out(out, out)
    copy_out(x, out)
    monkeypatch.undo()
    assert torch.equal(out, x)


@pytest.mark.gpu
def test_on_a_gpu_the_driver_copies_in_the_order_of_the_current_stream() -> None:
    """Torch's own copy does the same."""
    assert outputs._memcpy is not None
    out = torch.full((1000, 1000), torch.nan, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        x = torch.zeros(1000, 1000, device="cuda")
        for _ in range(1000):
            x += 1
        copy_out(x, out)
        torch.cuda.current_stream().synchronize()
    assert bool((out == 1000).all())
