"""Runs a learner's operator as PyTorch would: with a gradient, under its own checks, and compiled into one graph.

What PyTorch's checks say here is feedback: it can fail a case and never pass one. Points rest on what is written into
the arbiter's outputs: values, gradients, and numbers that tell what the operator promises and what was compiled.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Bound here, before there is a submission: what it puts in their place later is not called.
import torch
from torch import allclose, compile, empty, empty_strided, equal, full, tensor, where
from torch._dynamo import lookup_backend
from torch._dynamo import reset as forget_what_was_compiled
from torch._dynamo.exc import BackendCompilerFailed, TorchRuntimeError, Unsupported
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import grad as gradient_of
from torch.autograd.gradcheck import GradcheckError, gradcheck
from torch.library import opcheck

from grader.worker.outputs import guarded

Entry = Callable[..., Any]
_operators = torch.ops
_copy: Any = torch._C.TensorBase.copy_  # of a type of C: nobody can replace its methods
_REASON = re.compile(r"opcheck\(op, \.\.\.\): (?P<test>\w+) failed with (?P<said>.*?)(?: \(scroll up.*)?$", re.DOTALL)
_OTHER = 9.0  # the number of what is none of those that have a number of their own
_TYPES = {"Tensor": 1.0, "float": 2.0, "number": 2.0}  # of a schema; `Scalar` is called number there


class OperatorError(Exception):
    """What is wrong with an operator, in a sentence for its author."""


def examine(entry: Entry, given: tuple[Any, float, Any], asked: Mapping[str, Any], outputs: Sequence[Any]) -> None:
    """Calls `entry` for x, slope and gradient as they are `given`, and writes into `outputs` what the arbiter compares.

    `asked`: how tensors lie in memory, and a "step" besides the call, for the operator that it names.
    The first call is on a copy of -x, and for sentences: where x is positive, a kernel that works in place changes
    nothing. Then come PyTorch's checks, if the values are right: else they would hide what the arbiter says of these.
    The call that counts is on the arbiter's own tensors, which cannot be written to.

    Raises:
        OperatorError: something is wrong, in a sentence.
    """
    x, number, grad = given
    step, name = asked.get("step", "call"), asked.get("operator", "")
    if asked.get("grad") == "expanded":
        grad = laid_out(grad, "expanded")
    copy = laid_out(-x, asked.get("x", ""))
    right = _is_right(call(entry, copy, number, grad), copy, number, grad)
    compiled = None
    if right and step == "gradcheck":
        must_have_right_gradients(entry, x, number)
    elif right and step == "opcheck":
        must_pass_opcheck(name, x, number)
    elif right and step == "compile":
        entry = compiled = Compiled(entry, name)
        call(compiled, copy, number, grad, watch=False)
    result, gradient = _differentiated(entry, x, number, grad)
    _copy(outputs[0], result)
    _copy(outputs[1], gradient)
    if right and step == "opcheck":
        _copy(outputs[2], tensor(promises(name, asked["probes"], number, x.device), dtype=torch.float64))
    elif compiled is not None:
        _copy(outputs[2], tensor([compiled.graphs, compiled.with_operator], dtype=torch.float64))


def _is_right(found: tuple[Any, Any], x: Any, number: float, grad: Any) -> bool:
    """Whether the checks are worth their time. What is right must not lie about when the operator is called again."""
    pairs = zip(found, (x, grad), strict=True)
    return all(allclose(got, where(x > 0, values, number * values), rtol=1e-5) for got, values in pairs)


def _differentiated(entry: Entry, x: Any, number: float, grad: Any) -> tuple[Any, Any]:
    """Result and gradient."""
    leaf = x.detach().requires_grad_()
    result = entry(leaf, number)
    (gradient,) = gradient_of(result, leaf, grad)
    return result.detach(), gradient


def laid_out(x: Any, layout: str) -> Any:
    """A copy of the matrix: "contiguous", "padded" (rows lie apart), "transposed" (columns are neighbours) or
    "expanded" (its first element everywhere, with NaN behind it in memory)."""  # fmt: skip
    rows, columns = x.shape
    if layout == "padded":
        wide = full((rows, columns + 24), float("nan"), dtype=x.dtype, device=x.device)
        return wide[:, :columns].copy_(x)
    if layout == "transposed":
        return x.t().clone(memory_format=torch.contiguous_format).t()
    if layout == "expanded":
        memory = full((x.numel(),), float("nan"), dtype=x.dtype, device=x.device)
        memory[0] = x[0, 0]
        return memory[:1].expand(rows, columns)
    return x.clone(memory_format=torch.contiguous_format)


def call(entry: Entry, x: Any, number: float, grad: Any, watch: bool = True) -> tuple[Any, Any]:
    """The result of `entry(x, number)` and the gradient of `x`, for a gradient `grad` of the result.

    With `watch`, what a kernel writes beside tensors that `torch.empty` and its kin make is found.

    Raises:
        OperatorError: the result is no new tensor like `x`, it has no gradient, or `x` was changed.
    """
    before, leaf = x.detach().clone(), x.detach().requires_grad_()
    with guarded(watch) as overruns:
        result = entry(leaf, number)
        _must_be_like(result, leaf)
        if not equal(leaf, before):
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
    """Compares the gradient with differences of the function, by `torch.autograd.gradcheck`; `x` is float64.

    Raises:
        OperatorError: they differ.
    """
    try:
        gradcheck(lambda x: entry(x, number), (x.detach().clone().requires_grad_(),))
    except GradcheckError as error:
        said = str(error).strip().splitlines()[0].rstrip(",:")
        raise OperatorError(f"torch.autograd.gradcheck says: {said}") from None


def must_pass_opcheck(name: str, x: Any, number: float) -> None:
    """Has `torch.library.opcheck` test the operator of this name, as in "course::leaky_relu".

    Raises:
        OperatorError: there is no such operator, or it fails; the message has the words of torch.
    """
    operator = _registered(name)
    for sample in (laid_out(x, ""), x.double(), laid_out(x, "transposed")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                opcheck(operator, (sample.requires_grad_(), number))
        except Exception as error:
            raise OperatorError(_opcheck_says(error)) from None


def _registered(name: str) -> Any:
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(_operators, namespace), operator, None)
    if not isinstance(packet, OpOverloadPacket):
        raise OperatorError(
            f"No operator is registered under the name {name}. Put "
            f'`@torch.library.custom_op("{name}", mutates_args=())` above the function that launches the kernel.'
        )
    return packet.default


def _opcheck_says(error: Exception) -> str:
    found = _REASON.search(str(error))
    return f"opcheck, {found['test']}: {found['said']}" if found else f"opcheck: {type(error).__name__}: {error}"


def promises(name: str, probes: Sequence[Sequence[Any]], number: float, device: Any) -> list[float]:
    """What an operator says of itself, as numbers: first its schema, then what its fake kernels answer for each probe,
    which is rows, columns, the two strides, and 32 or 64 for the floating-point type.

    Of the schema: arguments that must be given, the types of the first two (1 a tensor, 2 a number), how many are
    written to, results, the type of the first, and how many alias an argument. Of each probe: dimensions, shape,
    strides, type and whether it is on the probe's device, of the result; the same of the gradient but for the strides.

    Raises:
        OperatorError: there is no such operator.
    """
    operator = _registered(name)
    arguments, results = operator._schema.arguments, operator._schema.returns
    needed = sum(not each.has_default_value() for each in arguments)
    types = [_TYPES.get(str(each.type), _OTHER) for each in (*arguments[:2], *results[:1])]
    types += [_OTHER] * (3 - len(types))
    written, aliases = (sum(each.alias_info is not None for each in some) for some in (arguments, results))
    found = [max(2.0, needed), *types[:2], float(written), float(len(results)), types[2], float(aliases)]
    for rows, columns, *strides, bits in probes:
        kind = {32: torch.float32, 64: torch.float64}[bits]
        with FakeTensorMode():  # no real kernel could run: there is not so much memory
            x = empty_strided((rows, columns), strides, dtype=kind, device=device).requires_grad_()
            result = operator(x, number)
            (gradient,) = gradient_of(result, x, empty((rows, columns), dtype=kind, device=device))
        found += [*_described(result, x), *map(float, _two(result.stride())), *_described(gradient, x)]
    return found


def _described(fake: Any, x: Any) -> list[float]:
    bits = {torch.float32: 32.0, torch.float64: 64.0}.get(fake.dtype, _OTHER)
    return [float(fake.dim()), *map(float, _two(fake.shape)), bits, float(fake.device == x.device)]


def _two(numbers: Sequence[int]) -> list[int]:
    return [*numbers, -1, -1][:2]


class Compiled:
    """The entry, called from a function that `torch.compile` must turn into one graph, forwards and backwards.

    A call raises OperatorError where it cannot. No code is generated: the graphs are run as they are. `graphs` counts
    them, and `with_operator` those in which an operator of the name's namespace is a node.
    """

    def __init__(self, entry: Entry, name: str) -> None:
        forget_what_was_compiled()
        self.graphs = self.with_operator = 0
        self._of_namespace = name.partition("::")[0] + "."
        self._run: Any = lookup_backend("aot_eager")

        def caller(x: Any, number: float) -> Any:
            return entry(x, number)

        self._whole = compile(caller, backend=self._look, fullgraph=True, dynamic=False)

    def __call__(self, x: Any, number: float) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._whole(x, number)
        except Unsupported as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            why = " ".join(line for line in lines[:3] if not line.startswith("Hint"))
            raise OperatorError(f"torch.compile cannot make one graph: {why}") from None
        except (BackendCompilerFailed, TorchRuntimeError) as error:
            inner = getattr(error, "inner_exception", None) or error
            raise OperatorError(f"torch.compile cannot make one graph: {inner}") from None

    def _look(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        parts = (part for part in graph.modules() if isinstance(part, torch.fx.GraphModule))  # a gradient is one
        self.with_operator += any(self._is_ours(node.target) for part in parts for node in part.graph.nodes)
        return self._run(graph, inputs)

    def _is_ours(self, target: Any) -> bool:
        return isinstance(target, OpOverload | OpOverloadPacket) and str(target).startswith(self._of_namespace)
