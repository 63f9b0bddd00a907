"""Runs a learner's operator as PyTorch would: with a gradient, under its own checks, and compiled into one graph."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from grader.worker.guarded import guarded

__all__ = ["OperatorError", "call", "compiled", "laid_out", "must_have_right_gradients", "must_pass_opcheck"]

Entry = Callable[..., Any]
_REASON = re.compile(r"opcheck\(op, \.\.\.\): (?P<test>\w+) failed with (?P<said>.*?)(?: \(scroll up.*)?$", re.DOTALL)


class OperatorError(Exception):
    """What is wrong with an operator, in a sentence for its author."""


def laid_out(x: Any, layout: str) -> Any:
    """A copy of the matrix: "contiguous", "padded" (rows lie apart), "transposed" (columns are neighbours) or
    "expanded" (its first element everywhere, with NaN behind it in memory)."""  # fmt: skip
    import torch

    rows, columns = x.shape
    if layout == "padded":
        wide = torch.full((rows, columns + 24), float("nan"), dtype=x.dtype, device=x.device)
        return wide[:, :columns].copy_(x)
    if layout == "transposed":
        return x.t().contiguous().t()
    if layout == "expanded":
        memory = torch.full((x.numel(),), float("nan"), dtype=x.dtype, device=x.device)
        memory[0] = x[0, 0]
        return memory[:1].expand(rows, columns)
    return x.clone()


def call(entry: Entry, x: Any, number: float, grad: Any, watch: bool = True) -> tuple[Any, Any]:
    """The result of `entry(x, number)` and the gradient of `x`, for a gradient `grad` of the result.

    With `watch`, what a kernel writes beside tensors that `torch.empty` and its kin make is found.

    Raises:
        OperatorError: the result is no new tensor like `x`, it has no gradient, or `x` was changed.
    """
    import torch

    before, leaf = x.detach().clone(), x.detach().requires_grad_()
    with guarded(watch) as overruns:
        result = entry(leaf, number)
        _must_be_like(result, leaf)
        if not torch.equal(leaf, before):
            raise OperatorError(
                "The function changed its input `x`: write the result into a new tensor, and leave `x` as it is."
            )
        if not result.requires_grad:
            raise OperatorError(
                "The result knows no way back to `x`: its gradient was never recorded. Call the operator that is "
                "registered, and give it its gradient with `register_autograd`."
            )
        result.backward(grad)
        if leaf.grad is None:
            raise OperatorError("`x` got no gradient: the function that is registered for it returned None first.")
        if overruns():
            raise OperatorError(
                "A kernel wrote beside a tensor that the function had made, into memory that is not its own: does each "
                "thread ask whether it has an element, `if (i < n)`?"
            )
    return result.detach(), leaf.grad


def _must_be_like(result: Any, x: Any) -> None:
    import torch

    if not isinstance(result, torch.Tensor):
        raise OperatorError(f"The function returned {type(result).__name__}, and should return a tensor.")
    if result is x or result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        raise OperatorError("The function returned its input: it should return a new tensor.")
    for what in ("shape", "dtype", "device"):
        got, wanted = getattr(result, what), getattr(x, what)
        if got != wanted:
            shown = [str(tuple(each) if what == "shape" else each) for each in (got, wanted)]
            raise OperatorError(f"The result has {what} {shown[0]} where `x` has {shown[1]}.")


def must_have_right_gradients(entry: Entry, x: Any, number: float) -> None:
    """Holds the gradient against differences of the function, by `torch.autograd.gradcheck`; `x` is float64.

    Raises:
        OperatorError: they differ.
    """
    import torch
    from torch.autograd.gradcheck import GradcheckError

    try:
        torch.autograd.gradcheck(lambda x: entry(x, number), (x.detach().clone().requires_grad_(),))
    except GradcheckError as error:
        said = str(error).strip().splitlines()[0].rstrip(",:")
        raise OperatorError(f"torch.autograd.gradcheck says: {said}") from None


def must_pass_opcheck(name: str, x: Any, number: float) -> None:
    """Has `torch.library.opcheck` test the operator of this name, as in "course::leaky_relu".

    Raises:
        OperatorError: there is no such operator, or it fails; the message has the words of torch.
    """
    import torch

    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    if packet is None:
        raise OperatorError(
            f"No operator is registered under the name {name}. Put "
            f'`@torch.library.custom_op("{name}", mutates_args=())` above the function that launches the kernel.'
        )
    for sample in (x.clone(), x.double(), laid_out(x, "transposed")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.library.opcheck(packet.default, (sample.requires_grad_(), number))
        except Exception as error:
            raise OperatorError(_opcheck_says(error)) from None


def _opcheck_says(error: Exception) -> str:
    found = _REASON.search(str(error))
    return f"opcheck, {found['test']}: {found['said']}" if found else f"opcheck: {type(error).__name__}: {error}"


def compiled(entry: Entry) -> Entry:
    """The entry, called from a function that `torch.compile` must turn into one graph, forwards and backwards.

    The call raises OperatorError where it cannot. No code is generated: the graphs are run as they are.
    """
    import torch

    torch._dynamo.reset()

    def caller(x: Any, number: float) -> Any:
        return entry(x, number)

    whole = torch.compile(caller, backend="aot_eager", fullgraph=True, dynamic=False)

    def run(x: Any, number: float) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return whole(x, number)
        except torch._dynamo.exc.Unsupported as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            why = " ".join(line for line in lines[:3] if not line.startswith("Hint"))
            raise OperatorError(f"torch.compile cannot make one graph: {why}") from None
        except (torch._dynamo.exc.BackendCompilerFailed, torch._dynamo.exc.TorchRuntimeError) as error:
            inner = getattr(error, "inner_exception", None) or error
            raise OperatorError(f"torch.compile cannot make one graph: {inner}") from None

    return run
