"""Rewrite a function full of graph breaks: one graph, at most two kernels, the same numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect

_WEIGHTS = 8  # with fewer, Inductor unrolls the mean on a GPU and needs one kernel less than on a CPU
_ALL = slice(None)


def _case(rows: int, columns: int, fill: str = "normal", note: str = "") -> Case:
    arrays = (
        Array("x", (rows, columns)),
        Array("w", (_WEIGHTS,), grows=None),
        Array("out", (rows, columns), role="out"),
    )
    return Case(f"{rows} × {columns}" + (f", {note}" if note else ""), arrays, fill)


def _draw(case: Case, source: Any, machine: Any) -> Any:
    """Rows of any magnitude, one of them zero; weights in the curve's range with a mean of the fill's sign.

    The first weight is on the other side of zero, so it cannot take the place of the mean.
    """
    import random

    import torch

    x, w = (array.shape for array in case.inputs)
    fill = random.SystemRandom().choice(case.fill.split("|"))
    uniform = torch.rand(*w, generator=source, device=source.device)
    weights = (uniform - uniform.mean()).sort(descending=fill == "below").values * 0.6
    weights[1:] = weights[1:][torch.randperm(w[0] - 1, generator=source, device=source.device)]
    weights += -0.1 if fill == "below" else 0.1
    values = torch.randn(*x, generator=source, device=source.device)
    values *= torch.exp(2 * torch.randn(x[0], 1, generator=source, device=source.device))
    if x[0] > 1:
        values[int(torch.randint(x[0], (), generator=source, device=source.device))] = 0
    return {"x": values, "w": weights}


def _as_one_graph(entry: Any, x: Any, w: Any, out: Any) -> None:
    from grader.worker.outputs import copy_out

    whole = globals().get("_whole")
    if whole is None:
        from grader.worker.harnesses.compiled_graph import WholeGraph

        whole = globals()["_whole"] = WholeGraph(entry, most_kernels=2)
    copy_out(whole(out, x, w), out)


def _as_it_is(entry: Any, x: Any, w: Any, out: Any) -> None:
    from grader.worker.outputs import copy_out

    copy_out(entry(x, w), out)


def _original(x: Any, w: Any) -> Any:
    import numpy as np
    import torch

    log = {}
    y = x.clone().div_(x.abs().amax(dim=1, keepdim=True).clamp(min=1e-6))
    y = torch.tanh(y) if w.mean() > 0 else y.clamp(-0.5, 0.5)
    gains = 1 / (1 + np.abs(w.cpu().numpy()))
    out = sum(gain * torch.relu(y - knot) for knot, gain in zip(w.tolist(), gains.tolist(), strict=True))
    out[:, ::2] *= -1
    log["mean"] = out.mean().item()
    if log["mean"] > 1000:
        print("suspiciously large:", log)
    return out


def _scaled(a: Any, peak: Any = None) -> Any:
    x = a["x"]
    return x / (x.abs().amax(1, keepdim=True).clamp(min=1e-6) if peak is None else peak)


def _curved(a: Any, y: Any) -> Any:
    return y.tanh() if a["w"].mean() > 0 else y.clamp(-0.5, 0.5)


def _hinges(a: Any, y: Any, gain: Any = None, magnitude: bool = True, sign: int = 1, some: slice = _ALL) -> Any:
    """The sum over the weights, before any sign is flipped."""
    import torch

    out = torch.zeros_like(y)
    for knot in a["w"][some]:
        own = 1 / (1 + (knot.abs() if magnitude else knot))
        out = out + (own if gain is None else gain) * (sign * (y - knot)).relu()
    return out


def _fitting(a: Any, parts: Iterable[slice]) -> Any:
    """The output with the terms of some knots, if that is the submission's, or the first."""
    made = [_flipped(_hinges(a, _curved(a, _scaled(a)), some=part)) for part in parts]
    fits = (each for each in made if "got" in a and bool(each.isclose(a["got"], 1e-3, 1e-6).all()))
    return next(fits, made[0])


def _one_term(a: Any) -> Any:
    return _fitting(a, (slice(-1, None), slice(0, 1)))


def _a_term_missing(a: Any) -> Any:
    return _fitting(a, (slice(0, -1), slice(1, None)))


def _without_relu(a: Any, magnitude: bool) -> Any:
    y = _curved(a, _scaled(a))
    terms = [(y - knot) / (1 + knot.abs()) for knot in a["w"]]
    return _flipped(sum(term.abs() if magnitude else term for term in terms))


def _flipped(out: Any, first: int = 0) -> Any:
    flipped = out.clone()
    flipped[:, first::2] *= -1
    return flipped


def _oracle(inputs: Any) -> Any:
    return _flipped(_hinges(inputs, _curved(inputs, _scaled(inputs))))


def _after(a: Any, y: Any) -> Any:
    return _flipped(_hinges(a, y))


def _by_element(a: Any) -> Any:
    y = _scaled(a)
    return _after(a, y.tanh().where(y > 0, y.clamp(-0.5, 0.5)))


def _other_curve(a: Any) -> Any:
    y = _scaled(a)
    return _after(a, y.tanh() if a["w"].mean() <= 0 else y.clamp(-0.5, 0.5))


def _peak_of_all(a: Any) -> Any:
    return _after(a, _curved(a, _scaled(a, a["x"].abs().amax()))) if a["x"].shape[0] > 1 else None


def _peak_signed(a: Any) -> Any:
    return _after(a, _curved(a, _scaled(a, a["x"].amax(1, keepdim=True).clamp(min=1e-6))))


def _zero_rows_divided(a: Any) -> Any:
    return _after(a, _curved(a, _scaled(a, a["x"].abs().amax(1, keepdim=True))))


_TIMED = (_case(4096, 4096, "normal|below"),)

FUSE = Exercise(
    id="fuse",
    title="Let the compiler fuse",
    chapter="01_profiling",
    notebook="05_let_the_compiler_fuse",
    entry="fuse",
    parameters=("x", "w"),
    backend="torch",
    cases=(
        _case(37, 53, note="weights above zero on average"),
        _case(64, 1000, "below", note="weights below zero on average"),
        _case(1, 129, "normal|below"),
    ),
    simulator_cases=(
        _case(37, 53, note="weights above zero on average"),
        _case(6, 200, "below", note="weights below zero on average"),
    ),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(4096, n, "normal|below") for n in (256, 1024, 4096, 8192)),
    oracle=_oracle,
    budget=Budget(absolute=2e-5, relative=1e-5),
    bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    operations=lambda case: 3 * case.arrays[1].shape[0] * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    correctness_points=3,
    baselines=(Baseline("eager", "the original (eager)", _original, _as_it_is),),
    gates=(Gate("eager", 3.0, 2, (_TIMED[0].name,)),),
    suspects=(
        Suspect(
            "The wrong curve was used: the two are swapped, only one is left, or something other than the mean "
            "decides. The original uses `tanh` if the mean of `w` is above zero, otherwise `clamp`. Compute both and "
            "select: `torch.where(w.mean() > 0, …, …)`.",
            _other_curve,
        ),
        Suspect(
            "The branch is selected for each element. In the original, one condition selects it for the whole "
            "tensor: `w.mean() > 0`.",
            _by_element,
        ),
        Suspect(
            "Everything was divided by the largest magnitude of the whole tensor: use each row's own.", _peak_of_all
        ),
        Suspect("Each row was divided by its largest value, not by its largest magnitude.", _peak_signed),
        Suspect("A row of zeros became NaN from 0 / 0. The original divides by at least 1e-6.", _zero_rows_divided),
        Suspect(
            "No sign was flipped: the original multiplies every second column by -1, starting at column 0.",
            lambda a: _flipped(_oracle(a)),
        ),
        Suspect(
            "The signs of the wrong columns were flipped: `::2` starts at column 0.",
            lambda a: _flipped(_flipped(_oracle(a)), 1),
        ),
        Suspect(
            "The gains are missing: each term is multiplied by `1 / (1 + |knot|)`.",
            lambda a: _flipped(_hinges(a, _curved(a, _scaled(a)), 1.0)),
        ),
        Suspect(
            "The magnitude is missing in the gains, which are `1 / (1 + |knot|)`.",
            lambda a: _flipped(_hinges(a, _curved(a, _scaled(a)), magnitude=False)),
        ),
        Suspect(
            "The signs of every second row were flipped: `out[:, ::2]` is every second column.",
            lambda a: _flipped(_flipped(_oracle(a)).t()).t(),
        ),
        Suspect(
            "The knots were subtracted from `x`: the terms use `y`, which is scaled and curved.",
            lambda a: _after(a, a["x"]),
        ),
        Suspect("The ReLU is missing: each term is `relu(y - knot)`.", lambda a: _without_relu(a, False)),
        Suspect(
            "A term is `relu(y - knot)`, which is 0 if `y` is below the knot. Here it is `abs(y - knot)`.",
            lambda a: _without_relu(a, True),
        ),
        Suspect(
            "Each difference has the wrong sign, `knot - y`: a term is `relu(y - knot)`.",
            lambda a: _flipped(_hinges(a, _curved(a, _scaled(a)), sign=-1)),
        ),
        Suspect(
            "Only one term is in the result: add the terms of all knots, `out = out + …`.",
            _one_term,
        ),
        Suspect(
            "The term of the first or the last knot is missing: loop over `range(w.shape[0])`.",
            _a_term_missing,
        ),
        Suspect("The curve is missing: neither `tanh` nor `clamp` was applied.", lambda a: _after(a, _scaled(a))),
    ),
    rules=Rules(("compile", "disable")),
    harness=_as_one_graph,
    draw=_draw,
    hints=(
        "Printing and logging are not part of the result: leave them out.",
        "`torch.where(condition, a, b)` also takes a one-element condition.",
        "A loop over `range(w.shape[0])` is unrolled during graph capture; `w[k]` stays a tensor.",
        "Writing to `out[:, ::2]` first stores all of `out` to memory. Multiplying each column by -1 or 1 does not.",
    ),
    time_limit_s=90.0,  # Inductor compiles in the first round
    round_limit_s=60.0,  # and again for each size
    plot_axis="N, columns of a row (4096 rows, float32)",
    plot_value=lambda case: case.arrays[0].shape[1],
)
