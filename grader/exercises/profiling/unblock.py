"""Remove the waits from a pipeline: no value fetched from the GPU, no copy to the CPU, no kernel per row."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Suspect
from grader.words import plural

_FULL_SCALE = 100.0
_KINDS = ("plain", "outliers", "dead", "saturated")


def _case(rows: int, columns: int, note: str, padding: int = 0) -> Case:
    """A case that grows in the number of columns, because the host's cost depends on the rows."""
    arrays = (
        Array("x", (rows, columns), row_padding=padding, grows=1),
        Array("gain", (rows,), grows=None),
        Array("out", (rows, columns), role="out", grows=1),
    )
    return Case(f"{rows} × {columns}, {note}", arrays)


def _returns(entry: Any, x: Any, gain: Any, out: Any) -> None:
    from grader.worker.harnesses.waits import count_waits
    from grader.worker.outputs import copy_out

    copy_out(count_waits(entry, x.shape[0], x, gain), out)


def _blocking(x: Any, gain: Any) -> Any:
    import torch

    def clean(row: Any, gain: Any) -> Any:
        low, high = row.min().item(), row.max().item()
        if low == high:
            return torch.zeros_like(row)
        z = (row - row.mean()) / row.std().cpu().to(row.device)
        if torch.any(z.abs() > 3):
            z = z.clamp(-3, 3)
        if max(abs(low), abs(high)) > 100:
            z = z * 0.5
        return z * gain.to(row.device)

    gain = gain.cpu()
    return torch.stack([clean(x[i], gain[i]) for i in range(x.shape[0])])


def _draw(case: Case, source: Any, machine: Any = None) -> dict[str, Any]:
    """Rows of the kinds named by the case, or of all kinds."""
    import torch

    chance, device = random.SystemRandom(), source.device
    rows, columns = next(array.shape for array in case.arrays if array.name == "x")
    named = [kind for kind in _KINDS if kind in case.name] or list(_KINDS)
    kinds = [named[i % len(named)] for i in range(rows)]
    chance.shuffle(kinds)
    x = torch.randn(rows, columns, generator=source, device=device)

    def some(kind: str) -> tuple[Any, Any]:
        """The rows of a kind, and a random column in each."""
        found = [i for i, one in enumerate(kinds) if one == kind]
        places = [chance.randrange(columns) for _ in found]
        rows_of_kind, columns_of_kind = torch.tensor([found, places], dtype=torch.long, device=device)
        return rows_of_kind, columns_of_kind

    def one_of(values: tuple[float, ...], count: int) -> Any:
        return torch.tensor([chance.choice(values) for _ in range(count)], device=device)

    at = some("outliers")
    x[at] = one_of((-12.0, 12.0), len(at[0]))
    x.mul_(0.5 + 3.5 * torch.rand(rows, 1, generator=source, device=device))
    x.add_(20 * torch.rand(rows, 1, generator=source, device=device) - 10)
    at = some("saturated")
    x[at] = torch.tensor([(-120.0, 120.0)[i % 2] for i in range(len(at[0]))], device=device)  # at both ends
    dead = some("dead")[0]
    x[dead] = one_of((0.0,) if "all at 0" in case.name else (0.0, -0.5, 12.25, 150.0), len(dead))[:, None]
    gain = 0.5 + 1.5 * torch.rand(rows, generator=source, device=device)
    return {"x": x, "gain": torch.where(torch.rand(rows, generator=source, device=device) < 0.3, -gain, gain)}


def _pipeline(a: Any, *, over: Any = 1, unbiased: bool = True, clip: bool | str = True, halve: str = "row",
              gained: str = "last", dead: str = "zero", centred: bool = True,
              squared: bool = False, bound: float = 3.0) -> Any:  # fmt: skip
    """The pipeline over whole matrices; the keywords are ways to get it wrong."""
    import torch

    x, gain = a["x"], a["gain"][:, None]
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    std, mean = torch.std_mean(x, dim=over, keepdim=True, correction=1 if unbiased else 0)
    z = (x - mean if centred else x) / (std**2 if squared else std)
    z = z * gain if gained == "first" else z
    z = z.clamp(-bound, bound) if clip is True else z
    z = z.clamp(max=3) if clip == "high" else z.clamp(min=-3) if clip == "low" else z
    saturated: Any = torch.maximum(low.abs(), high.abs()) > _FULL_SCALE
    halved = {"row": saturated, "any": saturated.any(), "element": x.abs() > _FULL_SCALE, "none": x.isinf(),
              "high": high > _FULL_SCALE}[halve]  # fmt: skip
    z = torch.where(halved, 0.5 * z, z)
    z = z.clamp(-3, 3) if clip == "late" else z
    z = z * gain if gained == "last" else z
    if dead == "zero":
        return torch.where(low == high, 0.0, z)
    return torch.where((low == high).any(), 0.0 * x, z) if dead == "any" else z


def _one_end_clipped(a: Any) -> Any:
    made = [_pipeline(a, clip=clip) for clip in ("high", "low")]
    return None if _not_clipped(a) is None else _fitting(a, made)


def _not_clipped(a: Any) -> Any:
    """The values as they are, where some are beyond each bound: otherwise one bound alone may be missing."""
    made = _pipeline(a, clip=False)
    at_both_ends = not any(made.equal(_pipeline(a, clip=clip)) for clip in ("high", "low"))
    return made if at_both_ends else None


def _clipped_elsewhere(a: Any) -> Any:
    """The output with the bound that its largest magnitude shows, if that is one for all rows."""
    low, high = a["x"].amin(1, keepdim=True), a["x"].amax(1, keepdim=True)
    plain = ((low.abs().maximum(high.abs()) <= _FULL_SCALE) & (low < high))[:, 0]
    got = a.get("got", _pipeline(a, bound=2.0))
    bounds = (got / a["gain"][:, None]).abs()[plain].amax(1) if bool(plain.any()) else got.new_zeros(0)
    bound = float(bounds.amax()) if len(bounds) else 3.0
    return _pipeline(a, bound=bound) if bool((bounds - bound).abs().lt(1e-3).sum() > 1) else None


def _plain_rows_halved(a: Any) -> Any:
    """The submission's output, if saturated rows are right and each other row is right or half of that."""
    import torch

    got, expected = a.get("got", a["expected"] / 2), a["expected"]
    low, high = a["x"].amin(1, keepdim=True), a["x"].amax(1, keepdim=True)
    saturated = torch.maximum(low.abs(), high.abs()) > _FULL_SCALE
    right, halved = (got.isclose(each, 1e-3, 1e-6).all(1, keepdim=True) for each in (expected, expected / 2))
    return got if bool((right | (halved & ~saturated)).all()) else None


def _fitting(a: Any, made: list[Any]) -> Any:
    fits = (each for each in made if "got" in a and bool(each.isclose(a["got"], 1e-3, 1e-6).all()))
    return next(fits, made[0])


_FEW = 5  # rows: with fewer, a wait for each row is no more than a wait for the whole matrix


def _waits(facts: Sequence[Mapping[str, int]]) -> str:
    """Say that the CPU waits, and whether that is at least once per row."""
    worst = max(facts, key=lambda fact: fact.get("waits", 0), default={})
    rows, waits = worst.get("rows", 0), worst.get("waits", 0)
    if not waits:
        return ""
    if rows >= _FEW and waits >= rows:
        return (
            f"For {plural(rows, 'row')} the CPU waits for the GPU {waits} times, as in the blocking pipeline. Compute "
            "all rows at once, without `.item()`, `.cpu()` and `if tensor:`."
        )
    return (
        f"In one call the CPU still waits for the GPU {plural(waits, 'time')}. Select with `torch.where` in place of "
        "`if tensor:` and of `x[mask]`, and keep values on the GPU: no `.item()`, no `.cpu()`, and no `synchronize()`."
    )


_EVERY = "every kind of row"
_CASES = (
    _case(1, 2, "a plain row"),
    _case(5, 37, "plain rows"),
    _case(6, 100, "rows with outliers"),
    _case(6, 100, "dead sensors, all at 0"),
    _case(8, 77, "dead and plain rows"),
    _case(8, 100, "saturated and plain rows"),
    _case(64, 333, _EVERY),
    _case(37, 200, f"{_EVERY}, rows padded to 256", padding=56),
)
_TIMED = (_case(160, 65_536, _EVERY),)

UNBLOCK = Exercise(
    id="unblock",
    title="Remove the waits from a pipeline",
    chapter="01_profiling",
    notebook="03_free_a_pipeline",
    entry="unblock",
    parameters=("x", "gain"),
    backend="torch",
    cases=(*_CASES, _case(9, 65_536, _EVERY)),
    simulator_cases=_CASES,
    timed_cases=_TIMED,
    # Long rows, because the baseline waits for each row.
    plot_cases=tuple(_case(rows, 1 << 20, _EVERY) for rows in (4, 8, 16, 32)),
    harness=_returns,
    of_compiled=_waits,
    draw=_draw,
    oracle=_pipeline,
    budget=Budget(absolute=1e-4, relative=1e-4),
    bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    operations=lambda case: 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    over_ceiling=2.0,  # long rows do not fit a cache and are read twice; eager code moves ten times the bytes
    correctness_points=3,
    baselines=(Baseline("blocking", "the blocking pipeline", _blocking),),
    gates=(Gate("blocking", 5.0, 2, (_TIMED[0].name,)),),
    suspects=(
        Suspect(
            "Dead rows are NaN: their standard deviation is 0, and 0 / 0 is NaN, which a multiplication by 0 does "
            "not remove. Select zeros for them with `torch.where`.",
            lambda a: _pipeline(a, dead="nan"),
        ),
        Suspect(
            "One dead row made every row zero: a branch for each row became one for the whole matrix.",
            lambda a: _pipeline(a, dead="any"),
        ),
        Suspect(
            "Mean and standard deviation were computed over the whole matrix, not for each row: `dim=1, keepdim=True`.",
            lambda a: _pipeline(a, over=(0, 1)),
        ),
        Suspect(
            "Mean and standard deviation were computed over columns: a sensor is a row, so reduce `dim=1`.",
            lambda a: _pipeline(a, over=0) if a["x"].shape[0] > 1 else None,
        ),
        Suspect(
            "The standard deviation uses a divisor of n. `row.std()` divides by n - 1, and the result must not change.",
            lambda a: _pipeline(a, unbiased=False),
        ),
        Suspect("Outliers were not clipped to 3 standard deviations.", _not_clipped),
        Suspect("Only one end was clipped: both -3 and 3 are bounds.", _one_end_clipped),
        Suspect(
            "The rows were clipped at another value: the bounds are -3 and 3 standard deviations.",
            _clipped_elsewhere,
        ),
        Suspect(
            "The values were divided by the variance: divide by its root, the standard deviation.",
            lambda a: _pipeline(a, squared=True),
        ),
        Suspect(
            "Saturated rows were not halved. Test the raw readings, before they are centred.",
            lambda a: _pipeline(a, halve="none"),
        ),
        Suspect(
            "One saturated row made every row halved: the branch needs a condition for each row.",
            lambda a: _pipeline(a, halve="any"),
            spares=tuple(case.name for case in _CASES[:4]),
        ),
        Suspect(
            "Rows without a saturated reading were halved: a row is saturated if a raw reading is above 100 or below "
            "-100.",
            _plain_rows_halved,
        ),
        Suspect(
            "Rows that are saturated at the negative end were not halved: a reading below -100 counts as well.",
            lambda a: _pipeline(a, halve="high"),
        ),
        Suspect(
            "Only the saturated readings were halved: halve the whole row of a saturated sensor.",
            lambda a: _pipeline(a, halve="element"),
        ),
        Suspect(
            "Saturated rows were halved before clipping: the pipeline clips to 3 standard deviations, then halves.",
            lambda a: _pipeline(a, clip="late"),
        ),
        Suspect("The gain is missing.", lambda a: _pipeline(a, gained="never")),
        Suspect(
            "The gain was applied before clipping: the pipeline clips to 3 standard deviations, then applies the gain.",
            lambda a: _pipeline(a, gained="first"),
        ),
        Suspect("The mean was not subtracted.", lambda a: _pipeline(a, centred=False)),
    ),
    hints=(
        "Reduce all rows at once: `torch.std_mean(x, dim=1, keepdim=True)`, `torch.aminmax(x, dim=1, keepdim=True)`.",
        "A branch that changes nothing when it is not needed can go without `if`: always clip.",
        "Any other branch becomes `torch.where(condition, this, that)`, with a condition for each row.",
        "`torch.where` drops the side it does not select: use it last, and a 0 / 0 on that side does no harm.",
        "Never fetch a value from the GPU: no `.item()`, `.cpu()`, `if tensor:`, `float(tensor)`.",
    ),
    plot_axis="rows (1,048,576 columns, float32)",
    plot_value=lambda case: case.arrays[0].shape[0],
)
