"""An operator runs as in PyTorch, and a message says what is wrong with it."""

import pytest
import torch

from grader.worker.harnesses import operators
from grader.worker.harnesses.operators import OperatorError


def _register(name, forward=None, fake=None, gradient=None):
    """Register x * slope as an operator. A part that is None is right, and one that is False is left out."""

    def right(x: torch.Tensor, slope: float) -> torch.Tensor:
        return x.contiguous() * slope

    def replaced(x: torch.Tensor, slope: float) -> torch.Tensor:
        return forward(x, slope)

    made = torch.library.custom_op(f"tests_worker::{name}", replaced if forward else right, mutates_args=())
    if fake is not False:
        made.register_fake(fake or (lambda x, slope: x.new_empty(x.shape)))

    def keep(ctx, inputs, output):
        x, ctx.slope = inputs
        ctx.save_for_backward(x)

    if gradient is not False:
        made.register_autograd(gradient or (lambda ctx, grad: (grad * ctx.slope, None)), setup_context=keep)
    return made


X = torch.arange(12, dtype=torch.float64).reshape(3, 4) - 5.5
GRAD = torch.arange(12, dtype=torch.float64).reshape(3, 4)


@pytest.mark.parametrize("layout", ["contiguous", "padded", "transposed"])
def test_a_layout_keeps_the_values(layout):
    """Only the elements' places in memory differ."""
    found = operators.laid_out(X, layout)
    assert torch.equal(found, X)
    assert found.is_contiguous() == (layout == "contiguous")
    assert found.data_ptr() != X.data_ptr()


def test_an_expanded_gradient_has_one_element_in_memory():
    """It is followed by NaN in memory, so that a kernel that reads on is found."""
    found = operators.laid_out(X, "expanded")
    assert found.stride() == (0, 0)
    assert (found == X[0, 0]).all()
    assert torch.as_strided(found, (12,), (1,))[1:].isnan().all()


def test_a_right_operator_passes_everything():
    """Values and gradients are returned, and no check fails: plain, under both checks, and compiled."""
    scale = _register("right")
    for entry in (scale, operators.Compiled(scale, "tests_worker::right")):
        result, gradient = operators.call(entry, X, 0.5, GRAD)
        assert torch.equal(result, X * 0.5)
        assert torch.equal(gradient, GRAD * 0.5)
    operators.must_have_right_gradients(scale, X, 0.5)
    operators.must_pass_opcheck("tests_worker::right", X.float(), 0.5)


def _in_place(x, slope):
    with torch.no_grad():
        return x.mul_(slope).clone()


def _writes_past(x, slope):
    out = torch.empty_like(x)
    out.as_strided((13,), (1,), out.storage_offset()).fill_(1.0)
    return out


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (lambda x, slope: None, "must return a tensor, not NoneType"),
        (lambda x, slope: x, "returned its input"),
        (lambda x, slope: x.reshape(-1), "returned its input"),
        (
            lambda x, slope: (x * slope).float(),
            "dtype of the result is torch.float32, but that of `x` is torch.float64",
        ),
        (lambda x, slope: (x * slope).flatten(), r"shape of the result is \(12,\), but that of `x` is \(3, 4\)"),
        (lambda x, slope: (x * slope).detach(), "not connected to `x`"),
        (lambda x, slope: _in_place(x.detach(), slope).requires_grad_(), "changed its input"),
        (lambda x, slope: _writes_past(x.detach(), slope).requires_grad_() + x, "wrote past the end"),
        (lambda x, slope: torch.zeros(3, 4, dtype=x.dtype).requires_grad_(), "got no gradient"),
    ],
)
def test_a_wrong_result_is_named(entry, sentence):
    """Each way of returning the wrong thing has a message."""
    with pytest.raises(OperatorError, match=sentence):
        operators.call(entry, X.clone(), 0.5, GRAD)


def test_a_wrong_gradient_is_found():
    """The message is `gradcheck`'s own, in one line."""
    wrong = _register("wrong_gradient", gradient=lambda ctx, grad: (grad, None))
    with pytest.raises(OperatorError, match=r"gradcheck says: Jacobian mismatch for output 0 with respect to input 0$"):
        operators.must_have_right_gradients(wrong, X, 0.5)


def test_a_broken_promise_is_found():
    """There is no operator, no fake, a fake with other strides, or a write that the schema does not mention."""
    with pytest.raises(OperatorError, match="No operator is registered under the name tests_worker::nothing"):
        operators.must_pass_opcheck("tests_worker::nothing", X, 0.5)
    _register("no_fake", fake=False)
    with pytest.raises(OperatorError, match="test_faketensor: There was no fake impl"):
        operators.must_pass_opcheck("tests_worker::no_fake", X, 0.5)
    _register("other_strides", fake=lambda x, slope: torch.empty_like(x))
    with pytest.raises(OperatorError, match="Stride mismatch"):
        operators.must_pass_opcheck("tests_worker::other_strides", X, 0.5)
    _register("in_place", forward=lambda x, slope: x.mul_(slope).clone())
    with pytest.raises(OperatorError, match="not defined as mutable but was mutated"):
        operators.must_pass_opcheck("tests_worker::in_place", X, 0.5)


def _leaky(x, slope):
    return torch.nn.functional.leaky_relu(x, slope)


def _strict(x, slope):
    if x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"not {x.dtype}")
    return _leaky(x, slope)


def _not_empty(x, slope):
    if not x.numel():
        raise RuntimeError("invalid configuration argument")
    return _strict(x, slope)


def test_limits_are_kept_or_named():
    """Other types must be refused and an empty tensor accepted; each fault has a message."""
    operators.must_keep_its_limits(_strict, X, 0.5)
    with pytest.raises(OperatorError, match=r"returned a result for a tensor of torch\.float16"):
        operators.must_keep_its_limits(_leaky, X, 0.5)
    with pytest.raises(OperatorError, match="without elements raised RuntimeError: invalid configuration"):
        operators.must_keep_its_limits(_not_empty, X, 0.5)
    with pytest.raises(OperatorError, match=r"shape \(0, 4\) gave a result of \(0,\)"):
        operators.must_keep_its_limits(lambda x, slope: _strict(x, slope)[:, 0], X, 0.5)


class _OnGpu(torch.Tensor):
    """A tensor that says so, on a machine without a GPU."""

    is_cuda = True

    def cpu(self):
        return self.as_subclass(torch.Tensor)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda right: right, None),
        (lambda right: 1 / 0, None),
        (lambda right: right + 1, "returned a result for a tensor on the CPU"),
        (lambda right: right[:1], r"shape of the result is \(1, 4\)"),
    ],
)
def test_for_a_tensor_on_the_cpu_an_operator_may_refuse_or_be_right(result, message):
    """PyTorch's operators have a kernel for each device; only a wrong result is an error."""

    def entry(x, slope):
        right = _strict(x, slope)
        return right if type(x) is _OnGpu or not x.numel() else result(right)

    if message is None:
        return operators.must_keep_its_limits(entry, X.as_subclass(_OnGpu), 0.5)
    with pytest.raises(OperatorError, match=message):
        operators.must_keep_its_limits(entry, X.as_subclass(_OnGpu), 0.5)


@pytest.mark.gpu
@pytest.mark.parametrize("step", [operators.must_follow_the_stream, operators.must_be_captured])
def test_on_a_gpu_an_operator_follows_the_current_stream(step):
    """PyTorch's own operation does, on a side stream and in a graph; work on the default stream is named."""

    def by_default(x, slope):
        with torch.cuda.stream(torch.cuda.default_stream()):
            return _leaky(x, slope)

    x = X.cuda()
    step(_leaky, x, 0.5)
    with pytest.raises(OperatorError, match="PyTorch's current"):
        step(by_default, x, 0.5)


def test_a_graph_break_is_found():
    """Code that the compiler cannot trace, forward or backward, is an error with its reason."""

    def breaks(x, slope):
        torch._dynamo.graph_break()
        return x * slope

    with pytest.raises(OperatorError, match="cannot make one graph: Call to `torch"):
        operators.call(operators.Compiled(breaks, "tests_worker::breaks"), X, 0.5, GRAD)
    wrong = _register("address", gradient=lambda ctx, grad: (grad * (grad.data_ptr() > 0), None))
    with pytest.raises(OperatorError, match="cannot make one graph: Cannot access data pointer"):
        operators.call(operators.Compiled(wrong, "tests_worker::address"), X, 0.5, GRAD)


PROBES = [[300_000, 400_000, 400_000, 1, 32], [500_000, 600_000, 1, 500_000, 64]]
RIGHT = [2, 1, 2, 0, 1, 1, 0]
RIGHT += [2, 300_000, 400_000, 32, 1, 400_000, 1, 2, 300_000, 400_000, 32, 1]
RIGHT += [2, 500_000, 600_000, 64, 1, 600_000, 1, 2, 500_000, 600_000, 64, 1]


def test_what_a_right_operator_promises_is_known() -> None:
    """Its schema, and its fake kernels' results for matrices too large for memory, are numbers."""
    _register("promises")
    assert operators.promises("tests_worker::promises", PROBES, 0.5, "cpu") == RIGHT


@pytest.mark.parametrize(
    ("fake", "at"),
    [
        (lambda x, slope: torch.empty_like(x), [24, 25]),  # the strides of the transposed probe
        (lambda x, slope: x.new_empty(x.shape, dtype=torch.float32), [22]),
        (lambda x, slope: x.new_empty(x.shape, device="meta"), [11, 23]),
    ],
    ids=["strides", "type", "device"],
)
def test_another_fake_gives_other_numbers(fake, at) -> None:
    """Each fact has its place among the numbers."""
    name = f"fake_{at[0]}"
    _register(name, fake=fake, gradient=lambda ctx, grad: (ctx.saved_tensors[0] * ctx.slope, None))
    found = operators.promises(f"tests_worker::{name}", PROBES, 0.5, "cpu")
    assert [place for place, (got, right) in enumerate(zip(found, RIGHT, strict=True)) if got != right] == at


def test_without_a_fake_nothing_is_promised() -> None:
    """A real kernel would need more memory than there is."""
    _register("silent", fake=False)
    with pytest.raises(Exception, match="fake"):
        operators.promises("tests_worker::silent", PROBES, 0.5, "cpu")


def test_a_graph_is_recognised_by_its_operator() -> None:
    """Traced code is one graph without an operator; disabled code is not a graph."""
    seen_into = operators.Compiled(lambda x, slope: x * slope, "tests_worker::nothing")
    operators.call(seen_into, X, 0.5, GRAD, watch=False)
    assert (seen_into.graphs, seen_into.with_operator) == (1, 0)
    opaque = operators.Compiled(_register("opaque"), "tests_worker::opaque")
    operators.call(opaque, X, 0.5, GRAD, watch=False)
    operators.call(opaque, X + 1, 0.5, GRAD, watch=False)
    assert (opaque.graphs, opaque.with_operator) == (1, 1)
    off = operators.Compiled(lambda x, slope: x * slope, "tests_worker::nothing")
    torch.compiler.set_stance("force_eager")
    try:
        operators.call(off, X, 0.5, GRAD, watch=False)
    finally:
        torch.compiler.set_stance("default")
    assert off.graphs == 0
