"""Run a learner's operator as PyTorch does: with a gradient, under PyTorch's checks, and compiled into one graph.

A failed check of PyTorch is feedback: it fails a case, but a passed check earns nothing. Points depend on the judge's
outputs: values, gradients, and numbers that describe the operator's schema and what was compiled.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Bound here, before there is a submission, which could replace them in their modules.
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
_cuda: Any = torch.cuda
_copy: Any = torch._C.TensorBase.copy_  # of a C type: its methods cannot be replaced
_REASON = re.compile(r"opcheck\(op, \.\.\.\): (?P<test>\w+) failed with (?P<said>.*?)(?: \(scroll up.*)?$", re.DOTALL)
_OTHER = 9.0  # for a type without a number
_REFUSED = (torch.float16, torch.bfloat16, torch.int64)
_SLEEP_CYCLES = 40_000_000  # some 20 ms, in which a kernel on another stream would run
_TYPES = {"Tensor": 1.0, "float": 2.0, "number": 2.0}  # in a schema, where `Scalar` is called number


class OperatorError(Exception):
    """A fault of an operator, as a sentence for its author."""


def examine(entry: Entry, given: tuple[Any, float, Any], asked: Mapping[str, Any], outputs: Sequence[Any]) -> None:
    """Call `entry` for x, slope and gradient in `given`, and write what the judge compares into `outputs`.

    `asked` has the memory layout of the tensors, the operator's name, and a "step" in addition to the call. The first
    call uses a copy of -x and only produces messages: for positive x, a kernel that works in place changes nothing.
    PyTorch's checks follow if the values are right; otherwise they would hide the judge's report. The call that counts
    uses the judge's own read-only tensors.

    Raises:
        OperatorError: the operator is wrong.
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
    elif right and step in _LIMITS:
        _LIMITS[step](entry, x, number)
    result, gradient = _differentiated(entry, x, number, grad)
    _copy(outputs[0], result)
    _copy(outputs[1], gradient)
    if right and step == "opcheck":
        _copy(outputs[2], tensor(promises(name, asked["probes"], number, x.device), dtype=torch.float64))
    elif compiled is not None:
        _copy(outputs[2], tensor([compiled.graphs, compiled.with_operator], dtype=torch.float64))


def _is_right(found: tuple[Any, Any], x: Any, number: float, grad: Any) -> bool:
    pairs = zip(found, (x, grad), strict=True)
    return all(allclose(got, where(x > 0, values, number * values), rtol=1e-5) for got, values in pairs)


def _differentiated(entry: Entry, x: Any, number: float, grad: Any) -> tuple[Any, Any]:
    leaf = x.detach().requires_grad_()
    result = entry(leaf, number)
    (gradient,) = gradient_of(result, leaf, grad)
    return result.detach(), gradient


def laid_out(x: Any, layout: str) -> Any:
    """Return a copy of the matrix that is "contiguous", "padded" (with gaps between rows), "transposed" or "expanded".

    An expanded copy has the first element everywhere, followed by NaN in memory.
    """
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
    """Return the result of `entry(x, number)` and the gradient of `x`, for a gradient `grad` of the result.

    With `watch`, writes outside of the tensors of `torch.empty` and similar functions are found.

    Raises:
        OperatorError: the result is not a new tensor like `x`, it has no gradient, or `x` was changed.
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
                "The result is not connected to `x`: no gradient was recorded. Call the registered operator, and "
                "register its gradient with `register_autograd`."
            )
        result.backward(grad)
        if leaf.grad is None:
            raise OperatorError("`x` got no gradient: the first value that its registered function returned is None.")
        if overruns():
            raise OperatorError(
                "A kernel wrote past the end or before the start of a tensor that the function allocated. Does each "
                "thread check that it has an element, `if (i < n)`?"
            )
    return result.detach(), leaf.grad


def _must_be_like(result: Any, x: Any) -> None:
    if not isinstance(result, torch.Tensor):
        raise OperatorError(f"The function must return a tensor, not {type(result).__name__}.")
    if result is x or result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        raise OperatorError("The function returned its input: it must return a new tensor.")
    for what in ("shape", "dtype", "device"):
        got, wanted = getattr(result, what), getattr(x, what)
        if got != wanted:
            shown = [str(tuple(each) if what == "shape" else each) for each in (got, wanted)]
            raise OperatorError(f"The {what} of the result is {shown[0]}, but that of `x` is {shown[1]}.")


def must_have_right_gradients(entry: Entry, x: Any, number: float) -> None:
    """Compare the gradient with finite differences by `torch.autograd.gradcheck`; `x` is float64."""
    try:
        gradcheck(lambda x: entry(x, number), (x.detach().clone().requires_grad_(),))
    except GradcheckError as error:
        said = str(error).strip().splitlines()[0].rstrip(",:")
        raise OperatorError(f"torch.autograd.gradcheck says: {said}") from None


def must_pass_opcheck(name: str, x: Any, number: float) -> None:
    """Test the operator of this name, such as "course::leaky_relu", with `torch.library.opcheck`."""
    operator = _registered(name)
    for sample in (laid_out(x, ""), x.double(), laid_out(x, "transposed")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                opcheck(operator, (sample.requires_grad_(), number))
        except Exception as error:
            found = _REASON.search(str(error))
            said = f", {found['test']}: {found['said']}" if found else f": {type(error).__name__}: {error}"
            raise OperatorError(f"opcheck{said}") from None


def must_keep_its_limits(entry: Entry, x: Any, number: float) -> None:
    """Call the entry with other types, on the CPU if `x` is on a GPU, and without elements.

    On the CPU it may refuse, or return the right result: PyTorch's operators have a kernel for each device.

    Raises:
        OperatorError: it returned a result that it should refuse, or refused to return an empty one.
    """
    for dtype in _REFUSED:
        room = full((4 * x.numel(),), 1, dtype=dtype, device=x.device)  # a kernel may read it as another type
        _must_refuse(entry, room[: x.numel()].view(x.shape).copy_(x), number, f"a tensor of {dtype}")
    if x.is_cuda:
        _must_refuse(entry, x.cpu(), number, "a tensor on the CPU", or_be_right=True)
    nothing = x.new_empty((0, x.shape[1])).requires_grad_()
    try:
        result = entry(nothing, number)
        if result.shape != nothing.shape:
            raise OperatorError(f"A tensor of shape {tuple(nothing.shape)} gave a result of {tuple(result.shape)}.")
        gradient_of(result, nothing, x.new_empty((0, x.shape[1])))
    except OperatorError:
        raise
    except Exception as error:
        raise OperatorError(
            f"A tensor without elements raised {type(error).__name__}: {error}. A grid must not be empty: return "
            "before the launch if there are no elements."
        ) from None


def _must_refuse(entry: Entry, x: Any, number: float, what: str, or_be_right: bool = False) -> None:
    try:
        with guarded(True):
            result = entry(x, number)
    except Exception:
        return
    if or_be_right:
        _must_be_like(result, x)
        if allclose(result, where(x > 0, x, number * x), rtol=1e-5):
            return
    raise OperatorError(
        f"The operator returned a result for {what}, which its kernels cannot read. Check the type and the device "
        "before the launch, and raise a TypeError."
    )


def must_follow_the_stream(entry: Entry, x: Any, number: float) -> None:
    """Call the entry on a side stream, after work that takes a while and writes its input. `x` is on a GPU.

    Raises:
        OperatorError: the kernel did not wait for the work.
    """
    late, side = full(x.shape, float("nan"), dtype=x.dtype, device=x.device), _cuda.Stream(x.device)
    side.wait_stream(_cuda.current_stream(x.device))
    with _cuda.stream(side):
        _cuda._sleep(_SLEEP_CYCLES)
        _copy(late, x)
        result = entry(late, number)
    _cuda.synchronize(x.device)
    if not allclose(result, where(x > 0, x, number * x), rtol=1e-5):
        raise OperatorError(
            "On a side stream the kernel did not wait for the work before it. Launch it on PyTorch's current stream, "
            "`torch.cuda.current_stream(x.device).cuda_stream`."
        )


def must_be_captured(entry: Entry, x: Any, number: float) -> None:
    """Capture a call in a CUDA graph and replay it on other values. `x` is on a GPU, and the entry has run before.

    Raises:
        OperatorError: the call cannot be captured, or a replay does not run the kernel.
    """
    given, graph = x.clone(), _cuda.CUDAGraph()
    try:
        with _cuda.graph(graph):
            result = entry(given, number)
    except Exception as error:
        raise OperatorError(
            f"The call cannot be captured in a CUDA graph: {type(error).__name__}: {error}. Launch the kernel on "
            "PyTorch's current stream, and do not wait for the GPU."
        ) from None
    _copy(given, -x)
    graph.replay()
    _cuda.synchronize(x.device)
    if not allclose(result, where(-x > 0, -x, number * -x), rtol=1e-5):
        raise OperatorError(
            "A replay of a CUDA graph left the old result: the kernel was not captured. Launch it on PyTorch's current "
            "stream, `torch.cuda.current_stream(x.device).cuda_stream`."
        )


_LIMITS = {"limits": must_keep_its_limits, "stream": must_follow_the_stream, "graph": must_be_captured}


def _registered(name: str) -> Any:
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(_operators, namespace), operator, None)
    if not isinstance(packet, OpOverloadPacket):
        raise OperatorError(
            f"No operator is registered under the name {name}. Put "
            f'`@torch.library.custom_op("{name}", mutates_args=())` above the function that launches the kernel.'
        )
    return packet.default


def promises(name: str, probes: Sequence[Sequence[Any]], number: float, device: Any) -> list[float]:
    """Describe an operator in numbers: its schema, and the results of its fake kernels for each probe.

    A probe is rows, columns, the two strides, and 32 or 64 for the floating-point type. The numbers per probe describe
    the result: dimensions, shape, strides, type, and whether it is on the probe's device. Then follow those of the
    gradient, without strides. The numbers of the schema are:

    - how many arguments are required, and the types of the first two (1 for a tensor, 2 for a number)
    - how many arguments are written to
    - how many results there are, the type of the first, and how many alias an argument

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
        with FakeTensorMode():  # the probes are too large for real memory
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
    """The entry, called from a function that `torch.compile` must turn into one graph, forward and backward.

    A call raises `OperatorError` if it cannot. No code is generated: the graphs are run as captured. `graphs` counts
    them, and `with_operator` counts those with an operator of the name's namespace as a node.
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
        parts = (part for part in graph.modules() if isinstance(part, torch.fx.GraphModule))  # one may be a gradient
        self.with_operator += any(self._is_ours(node.target) for part in parts for node in part.graph.nodes)
        return self._run(graph, inputs)

    def _is_ours(self, target: Any) -> bool:
        return isinstance(target, OpOverload | OpOverloadPacket) and str(target).startswith(self._of_namespace)
