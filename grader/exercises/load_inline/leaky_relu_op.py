"""Register leaky ReLU as an operator: two kernels that work with autograd, PyTorch's checks and `torch.compile`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Rules, Suspect, Tensors
from grader.protocol.channel import from_bytes, to_bytes

_OPERATOR = "course::leaky_relu"
_HOW_BYTES = 300
_HOW: dict[str, dict[str, str]] = {}  # by case: its steps and the memory layout of its tensors
_SCHEMA = (2.0, 1.0, 2.0, 0.0, 1.0, 1.0, 0.0)  # see `grader.worker.harnesses.operators.promises`
_PROBES = 3
_OF_A_PROBE = 12
_PROMISES = {"opcheck": len(_SCHEMA) + _PROBES * _OF_A_PROBE, "compile": 2}  # number of values per step
_EXACT = Budget(absolute=1e-30, relative=1e-12)  # a detour through float32 is far off


def _case(rows: int, columns: int, note: str = "", dtype: str = "float32", **how: str) -> Case:
    def matrix(name: str) -> Array:
        layout = how.get(name)
        padding = 24 if layout == "padded" else 0
        return Array(name, (rows, columns), dtype, row_padding=padding, transposed=layout == "transposed")

    step = how.get("step", "")
    arrays = (
        matrix("x"),
        Array("slope", (1,)),
        matrix("grad"),
        Array("how", (_HOW_BYTES,), "uint8"),
        Array("out", (rows, columns), dtype, role="out"),
        Array("grad_x", (rows, columns), dtype, role="out"),
        *(Array("promises", (_PROMISES[each],), "float64", role="out") for each in (step,) if each in _PROMISES),
    )
    name = f"{rows} × {columns}" + (f", {note}" if note else "")
    case = Case(name, arrays, budget=_EXACT if step == "gradcheck" else None)
    _HOW[case.name] = how
    return case


def _probes() -> list[list[int]]:
    """Matrices too large for any machine: rows, columns, strides, bits. Contiguous, transposed, or padded."""
    chance, found = random.SystemRandom(), []
    for _ in range(_PROBES):
        rows, columns = (chance.randrange(1 << 18, 1 << 20) for _ in range(2))
        padded = [columns + chance.randrange(1, 64), 1]
        found.append([rows, columns, *chance.choice(([columns, 1], [1, rows], padded)), chance.choice((32, 64))])
    return found


def _draw(case: Case, source: Any, machine: Any) -> Tensors:
    """Normal values with some zeros (none for finite differences), and a slope of the case's kind.

    The signs of the first four elements tell the suspects apart. A single element is positive and cannot.
    """
    import torch

    how = _HOW[case.name]
    shape, dtype = case.arrays[0].shape, getattr(torch, case.arrays[0].dtype)
    x, grad = (torch.randn(shape, generator=source, device=source.device, dtype=dtype) for _ in range(2))
    x += 0.1 * x.sign()
    if how.get("step") != "gradcheck":
        x[torch.rand(shape, generator=source, device=source.device) < 0.1] = 0.0
    known = 1 if x.numel() == 1 else 3 if how.get("step") == "gradcheck" else 4
    for tensor, signs in ((x, (1, -1, -1, 0)), (grad, (1, 1, -1, 1))):
        first = tensor.view(-1)[:known]
        first.copy_((first.abs() + 0.1) * torch.tensor(signs[:known], device=source.device))
    low, high = {"above 1": (1.5, 3.0), "below 0": (-0.9, -0.2)}.get(how.get("slope", ""), (0.05, 0.45))
    slope = low + (high - low) * torch.rand(1, generator=source, device=source.device)
    asked = {**how, "operator": _OPERATOR} | ({"probes": _probes()} if how.get("step") == "opcheck" else {})
    return {"x": x, "slope": slope, "grad": grad, "how": to_bytes(asked, _HOW_BYTES)}


def _harness(entry: Any, x: Any, slope: Any, grad: Any, how: Any, *outputs: Any) -> None:
    from grader.protocol.channel import from_bytes
    from grader.worker.harnesses.operators import examine

    examine(entry, (x, slope.item(), grad), from_bytes(how), outputs)


def _leaky(x: Any, values: Any, slope: Any) -> Any:
    """`values` if x is positive, otherwise `values` times the slope."""
    import torch

    return torch.where(x > 0, values, slope * values)


def _grad(a: Tensors) -> Any:
    """The gradient of the result; in one case its first element is used for all."""
    grad = a["grad"]
    return grad[:1, :1].expand(grad.shape) if from_bytes(a["how"]).get("grad") == "expanded" else grad


def _oracle(a: Tensors) -> Any:
    import torch

    values = _leaky(a["x"], a["x"], a["slope"]), _leaky(a["x"], _grad(a), a["slope"])
    asked = from_bytes(a["how"])
    if asked.get("step") not in _PROMISES:
        return values
    promised = [1.0, 1.0]  # one graph, with the operator in it
    if asked["step"] == "opcheck":
        promised = [*_SCHEMA]
        for rows, columns, *_, bits in asked["probes"]:
            alike = [2, rows, columns, bits, 1]
            promised += [*alike, columns, 1, *alike]
    return *values, torch.tensor(promised, dtype=torch.float64)


def _in_memory(x: Any, layout: str) -> Any:
    """The values that a kernel reads if it assumes contiguous memory; None if the memory is contiguous."""
    import torch

    if layout == "transposed":
        return x.t().reshape(x.shape)
    if layout == "padded":
        wide = torch.nn.functional.pad(x, (0, 24), value=float("nan"))
        return wide.reshape(-1)[: x.numel()].reshape(x.shape)
    if layout == "expanded":
        return torch.full_like(x, float("nan")).index_put_((torch.tensor(0), torch.tensor(0)), x[0, 0])
    return None


def _x_misread(a: Tensors) -> Any:
    x = _in_memory(a["x"], from_bytes(a["how"]).get("x", ""))
    return None if x is None else _leaky(x, x, a["slope"])


def _grad_misread(a: Tensors) -> Any:
    grad = _in_memory(a["grad"], from_bytes(a["how"]).get("grad", ""))
    return None if grad is None else _leaky(a["x"], grad, a["slope"])


def _result_in_the_layout_of_x(a: Tensors) -> Any:
    import torch

    if from_bytes(a["how"]).get("x", "") != "transposed":
        return None
    values = _leaky(a["x"], a["x"], a["slope"])
    in_memory: torch.Tensor = values.reshape(values.t().shape).t()
    return in_memory


def _suspect(sentence: str, output: Callable[[Tensors], Any]) -> Suspect:
    """A suspect for the values of more than one element: several bugs give the same single positive element."""
    return Suspect(sentence, lambda a: None if a["x"].numel() == 1 or _promised(a) else output(a))


def _promised(a: Tensors) -> bool:
    return "expected" in a and a["expected"].dim() == 1


def _broken(step: str, first: int, last: int) -> Callable[[Tensors], Any]:
    """The output, if one of these values of a step's promises is wrong."""

    def output(a: Tensors) -> Any:
        if not _promised(a) or from_bytes(a["how"]).get("step") != step:
            return None
        expected = a["expected"]
        example = expected.clone()
        example[first] += 1
        got = a.get("got", example)
        return got if bool((got != expected)[first:last].any()) else None

    return output


_NOT_CONTIGUOUS = (
    "is not contiguous here, but the kernel read its memory as if it were: launch it on `{0}.contiguous()`, which "
    "copies only if necessary."
)

_CASES = (
    _case(1, 1), _case(3, 5), _case(37, 53), _case(29, 40, "rows of x padded", x="padded"),
    _case(29, 41, "x transposed", x="transposed"), _case(29, 43, "gradient transposed", grad="transposed"),
    _case(29, 45, "one gradient for all, as from sum()", grad="expanded"),
    _case(23, 35, "slope above 1", slope="above 1"), _case(23, 37, "slope below 0", slope="below 0"),
    _case(19, 33, "float64", dtype="float64"), _case(3, 4, "gradcheck", dtype="float64", step="gradcheck"),
    _case(5, 6, "opcheck", step="opcheck", x="transposed", grad="expanded"),
    _case(7, 9, "compiled", step="compile", x="transposed", grad="expanded"),
    replace(_case(5, 8, "other types, and no elements", step="limits"), if_right=True),
)  # fmt: skip
_OF_A_GPU = (
    replace(_case(64, 65, "on a side stream", step="stream"), if_right=True),
    replace(_case(64, 67, "in a CUDA graph", step="graph"), if_right=True),
)

LEAKY_RELU_OP = Exercise(
    id="leaky_relu_op",
    title="Make leaky ReLU an operator",
    chapter="02_load_inline",
    notebook="04_make_it_an_operator",
    entry="leaky_relu_op",
    parameters=("x", "slope"),
    backend="cuda",
    cases=(*_CASES[:2], _case(1823, 781), *_CASES[3:], *_OF_A_GPU),
    simulator_cases=_CASES,
    timed_cases=(),
    plot_cases=(),
    oracle=_oracle,
    budget=Budget(absolute=1e-30, relative=1e-6),
    bytes_moved=lambda case: 5 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],  # x, out; grad, x, grad_x
    operations=lambda case: 2 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    correctness_points=5,
    harness=_harness,
    draw=_draw,
    suspects=(
        _suspect(f"`x` {_NOT_CONTIGUOUS.format('x')}", _x_misread),
        _suspect(f"The gradient {_NOT_CONTIGUOUS.format('grad')}", _grad_misread),
        _suspect("The slope is always 0.01: pass `slope` to the kernel.", lambda a: _leaky(a["x"], a["x"], 0.01)),
        _suspect(
            "The slope of the gradient is always 0.01: save the slope in `ctx` and pass it to the kernel.",
            lambda a: _leaky(a["x"], _grad(a), 0.01),
        ),
        _suspect(
            "This is the larger of x and slope * x, which is leaky ReLU only for slopes up to 1: test the sign of x.",
            lambda a: a["x"].maximum(a["slope"] * a["x"]),
        ),
        _suspect("This is ReLU: if x is negative, the result is slope * x.", lambda a: a["x"].relu()),
        _suspect(
            "The two sides are swapped: where x is positive, the result is x, not slope * x.",
            lambda a: _leaky(-a["x"], a["x"], a["slope"]),
        ),
        _suspect(
            "The two sides of the gradient are swapped: where x is positive, it is the gradient of the result.",
            lambda a: _leaky((a["x"] <= 0).float(), _grad(a), a["slope"]),
        ),
        _suspect(
            "The result has the strides of `x`, but the kernel wrote its elements one after the other: allocate it "
            "contiguous, from `x.contiguous()` or with `x.new_empty(x.shape)`.",
            _result_in_the_layout_of_x,
        ),
        _suspect("The input was copied unchanged.", lambda a: a["x"]),
        _suspect(
            "The gradient was passed on unchanged: if x is not positive, it is slope times the gradient of the result.",
            _grad,
        ),
        _suspect(
            "The gradient of the result is missing: `backward` returns its `grad` times 1 or the slope for each "
            "element.",
            lambda a: _leaky(a["x"], a["x"] * 0 + 1, a["slope"]),
        ),
        _suspect(
            "The condition tests the sign of the gradient instead of x: which pointer does it read?",
            lambda a: _leaky(_grad(a), _grad(a), a["slope"]),
        ),
        _suspect(
            "x and the gradient are swapped: does `launch` pass the tensors in the order of the kernel's parameters?",
            lambda a: _leaky(_grad(a), a["x"], a["slope"]),
        ),
        _suspect(
            "The condition tests the sign of the result instead of x. Save x for the backward pass: with a slope "
            "below 0, the result is positive if x is negative.",
            lambda a: _leaky(_leaky(a["x"], a["x"], a["slope"]), _grad(a), a["slope"]),
        ),
        _suspect(
            "The gradient is wrong if x is 0: like the result, it uses the slope there, since 0 is not above 0.",
            lambda a: _leaky(a["x"] + (a["x"] == 0), _grad(a), a["slope"]),
        ),
        _suspect(
            "This is the gradient of ReLU: if x is negative, it is slope times the gradient of the result, not 0.",
            lambda a: _leaky(a["x"], _grad(a), 0.0),
        ),
        _suspect(
            "This is the result times the gradient. The derivative of leaky ReLU is 1 or the slope: x appears only "
            "in the condition.",
            lambda a: _leaky(a["x"], a["x"], a["slope"]) * _grad(a),
        ),
        Suspect(
            f"The schema of {_OPERATOR} should be (Tensor x, float slope) -> Tensor, without mutated arguments.",
            _broken("opcheck", 0, len(_SCHEMA)),
        ),
        Suspect(
            "For random shapes, types and strides, the fake kernels must describe a new contiguous result like x and "
            "a gradient like x. Yours describe something else.",
            _broken("opcheck", len(_SCHEMA), _PROMISES["opcheck"]),
        ),
        Suspect(
            "torch.compile did not build one graph with the operator in it: is the operator called, and is "
            "compilation enabled?",
            _broken("compile", 0, 2),
        ),
    ),
    rules=Rules(
        (
            *("leaky_relu", "prelu", "rrelu", "relu", "where", "clamp", "clamp_min", "clamp_max", "maximum", "minimum"),
            *("mul", "multiply", "leaky_relu_backward", "LeakyReLU"),
        )
    ),
    hints=(
        "Both kernels test the same condition, `x[i] > 0`. The forward kernel then returns x or slope * x, the "
        "backward kernel grad or slope * grad.",
        "A kernel that gets pointers assumes contiguous memory: call `.contiguous()` on every tensor first.",
        "The fake kernel returns an empty tensor with the right shape, type and strides: `x.new_empty(x.shape)` is "
        "contiguous.",
        "The compiler calls the gradient with tensors that have no memory, so the gradient's kernel needs its own "
        "operator.",
        "Refuse other types with a TypeError before the launch, and return without a launch if there are no elements: "
        "a grid must not be empty. Launch on `torch.cuda.current_stream(x.device).cuda_stream`.",
        "The slope is a number, so save it with `ctx.slope = slope`: `save_for_backward` takes only tensors. The "
        "gradient function returns one value for each argument of the operator, and None for the slope.",
    ),
    case_limit_s=60.0,  # the harness lets torch test and compile the operator
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
)
