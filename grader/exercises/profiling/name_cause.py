"""Name the cause of a kernel's slowness from its evidence: whatever costs the most time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Suspect
from grader.protocol.channel import from_bytes, to_bytes

CAUSES = ("launches", "repeated traffic", "scattered access", "few blocks", "none")
# By the name of the case: the right answer, and the ranges of what is drawn.
# These are launches, passes over the bytes, sectors per access, blocks per SM, and megabytes that must move.
KINDS: dict[str, tuple[str, dict[str, tuple[float, float]]]] = {
    "a launch per row": ("launches", {"launches": (500, 9000), "passes": (1.1, 1.3), "megabytes": (4, 64)}),
    "three passes over the rows": ("repeated traffic", {"passes": (2.8, 4.0), "megabytes": (200, 900)}),
    "a warp along a column": ("scattered access", {"sectors": (16, 32), "megabytes": (100, 900)}),
    "a grid of a few blocks": ("few blocks", {"per_sm": (0.05, 0.4), "megabytes": (50, 500)}),
    "scattered access by half a grid": (
        "few blocks", {"launches": (1, 1), "passes": (1.1, 1.2), "sectors": (8, 8), "per_sm": (0.53, 0.56)},
    ),
    "a kernel at its limit": ("none", {"megabytes": (4000, 9000), "launches": (2, 3), "passes": (1.015, 1.03)}),
    "a hundred launches of long kernels": (
        "repeated traffic", {"launches": (60, 120), "passes": (2.0, 3.0), "megabytes": (2500, 4000)},
    ),
    "scattered access to a small tensor": (
        "launches", {"launches": (1000, 3000), "sectors": (24, 32), "megabytes": (16, 24)},
    ),
    "two passes by not quite enough blocks": (
        "repeated traffic", {"passes": (2.0, 3.0), "per_sm": (0.8, 0.95), "megabytes": (300, 900)},
    ),
    "two passes, both scattered": (
        "scattered access", {"passes": (1.8, 2.2), "sectors": (12, 32), "megabytes": (200, 900)},
    ),
    "a few launches more than one": (
        "none", {"launches": (9, 12), "passes": (1.0002, 1.0003), "megabytes": (4000, 9000)},
    ),
    "one launch of a short kernel": ("none", {"launches": (1, 1), "megabytes": (1, 2)}),
    "more than two passes, all scattered": (
        "scattered access", {"passes": (2.3, 2.7), "sectors": (8, 8), "megabytes": (200, 900)},
    ),
}  # fmt: skip
_SCATTERED = tuple(name for name, (_, ranges) in KINDS.items() if "sectors" in ranges)
_USUAL = {"launches": (1, 2), "passes": (1.0, 1.0), "sectors": (4, 4), "per_sm": (4, 16), "megabytes": (64, 512)}
_NEEDED = 4  # sectors of an access of 32 lanes with 4 bytes each
_CLEAR, _MOST_OF_NONE = 1.5, 0.08
_WORTH = 0.1  # of the time
_BYTES = 2000


def evidence(kind: str) -> dict[str, Any]:
    """The evidence about a new random kernel of one of the `KINDS`."""
    right, ranges = KINDS[kind]
    chance = random.SystemRandom()
    while True:
        drawn = {name: chance.uniform(*span) for name, span in (_USUAL | ranges).items()}
        sms = chance.choice((58, 108, 114, 132, 142))
        must = int(1e6 * drawn["megabytes"]) // 4 * 4
        found = {
            "launches": round(drawn["launches"]),
            "launch_us": round(chance.uniform(2.0, 6.0), 2),
            "must_move_bytes": must,
            "moved_bytes": int(must * drawn["passes"]) // 4 * 4,
            "sectors_per_access": round(drawn["sectors"]),
            "sectors_needed": _NEEDED,
            "blocks": max(1, round(sms * drawn["per_sm"])),
            "sms": sms,
            "copy_gbps": round(chance.uniform(250, 4200)),
        }
        costs = _costs(found)
        least = must / found["copy_gbps"] / 1e3
        found["time_us"] = round(least + sum(costs.values()), 3)
        first, second = sorted(costs.values(), reverse=True)[:2]
        clear = first < _MOST_OF_NONE * found["time_us"] if right == "none" else first > _CLEAR * second
        if clear and _answer(found) == right:
            return found


def _costs(seen: dict[str, Any]) -> dict[str, float]:
    """The microseconds that each cause costs."""
    bytes_per_us = 1e3 * seen["copy_gbps"]
    moving = seen["moved_bytes"] / bytes_per_us
    waste = seen["sectors_per_access"] / seen["sectors_needed"]
    return {
        "launches": (seen["launches"] - 1) * seen["launch_us"],
        "repeated traffic": (seen["moved_bytes"] - seen["must_move_bytes"]) / bytes_per_us,
        "scattered access": moving * (waste - 1),
        "few blocks": moving * waste * (_idle(seen) - 1),
    }


def _largest(costs: dict[str, float], least: float) -> str:
    name = max(costs, key=lambda cause: costs[cause])
    return name if costs[name] >= least else "none"


def _answer(seen: dict[str, Any]) -> str:
    return _largest(_costs(seen), _WORTH * seen["time_us"])


def _by_ratio(seen: dict[str, Any]) -> str:
    ratios = {
        "launches": float(seen["launches"]),
        "repeated traffic": seen["moved_bytes"] / seen["must_move_bytes"],
        "scattered access": seen["sectors_per_access"] / seen["sectors_needed"],
        "few blocks": seen["sms"] / seen["blocks"],
    }
    return _largest(ratios, 1.1)


def _idle(seen: dict[str, Any]) -> float:
    times: float = max(1.0, seen["sms"] / seen["blocks"])
    return times


def _in_order(seen: dict[str, Any]) -> str:
    """The first cause that is there at all."""
    if seen["launches"] > 1:
        return "launches"
    if seen["moved_bytes"] > seen["must_move_bytes"]:
        return "repeated traffic"
    if seen["sectors_per_access"] > seen["sectors_needed"]:
        return "scattered access"
    return "few blocks" if seen["blocks"] < seen["sms"] else "none"


def _always_one(seen: dict[str, Any]) -> str:
    return _largest(_costs(seen), 0.0)


def _launches_left_out(seen: dict[str, Any]) -> str:
    return _largest(_costs(seen) | {"launches": 0.0}, _WORTH * seen["time_us"])


def _wrong_unit(factor: float) -> Callable[[dict[str, Any]], str]:
    """A bandwidth that is too large by this factor."""
    return lambda seen: _answer(seen | {"copy_gbps": factor * seen["copy_gbps"]})


def _with(cause: str, cost: Callable[[float, float, dict[str, Any]], float]) -> Callable[[dict[str, Any]], str]:
    """The answer with another cost of this cause. It takes the time to move all bytes, the waste, and the evidence."""

    def answer(seen: dict[str, Any]) -> str:
        moving = seen["moved_bytes"] / 1e3 / seen["copy_gbps"]
        costs = _costs(seen) | {cause: cost(moving, seen["sectors_per_access"] / seen["sectors_needed"], seen)}
        return _largest(costs, _WORTH * seen["time_us"])

    return answer


def _inverted_waste(seen: dict[str, Any]) -> str:
    turned = {"sectors_per_access": seen["sectors_needed"], "sectors_needed": seen["sectors_per_access"]}
    return _largest(_costs(seen | turned), _WORTH * seen["time_us"])


def _half_required(seen: dict[str, Any]) -> str:
    return _largest(_costs(seen), 0.5 * seen["time_us"])


def _all_but(*names: str) -> tuple[str, ...]:
    return tuple(name for name in KINDS if name not in names)


def _seen(inputs: Any) -> dict[str, Any]:
    found: dict[str, Any] = from_bytes(inputs["evidence"])
    return found


def _number(name: str, inputs: Any) -> Any:
    import torch

    return torch.tensor([float(CAUSES.index(name))], dtype=torch.float64, device=inputs["evidence"].device)


def _oracle(inputs: Any) -> Any:
    return _number(_answer(_seen(inputs)), inputs)


def _suspect(
    sentence: str,
    answer: Callable[[dict[str, Any]], str],
    spares: tuple[str, ...] = (),
    breaks: tuple[str, ...] = (),
) -> Suspect:
    return Suspect(sentence, lambda inputs: _number(answer(_seen(inputs)), inputs), spares=spares, breaks=breaks)


def _one_name(entry: Any, evidence: Any, out: Any) -> None:
    from grader.protocol.channel import from_bytes

    names = ("launches", "repeated traffic", "scattered access", "few blocks", "none")
    answer = entry(from_bytes(evidence))
    if answer not in names:
        raise ValueError(f"name_cause must return one of {', '.join(map(repr, names))}, but returned {answer!r:.80}")
    out.fill_(float(names.index(answer)))


def _case(name: str) -> Case:
    return Case(name, (Array("evidence", (_BYTES,), "uint8"), Array("out", (1,), "float64", role="out")))


_CASES = tuple(_case(name) for name in KINDS)

_UNIT = (
    "A cost has the wrong unit, so that bytes seem to cost {}. 1 GB/s is 1000 bytes per microsecond: divide bytes by "
    "`1000 * copy_gbps`."
)

NAME_CAUSE = Exercise(
    id="name_cause",
    title="Name the cause",
    chapter="01_profiling",
    notebook="03_free_a_pipeline",
    entry="name_cause",
    parameters=("evidence",),
    backend="torch",
    cases=_CASES,
    simulator_cases=_CASES,
    timed_cases=(),
    plot_cases=(),
    harness=_one_name,
    draw=lambda case, source, machine: {"evidence": to_bytes(evidence(case.name), _BYTES)},
    oracle=_oracle,
    budget=Budget(absolute=1e-6, relative=0.0),
    answers=("cause",),
    answer_words=CAUSES,
    bytes_moved=lambda case: case.arrays[0].shape[0],
    operations=lambda case: case.arrays[0].shape[0],
    correctness_points=3,
    suspects=(
        _suspect(
            "The first launch was counted as well: the call needs one launch in any case, so it costs `launches - 1`.",
            _with("launches", lambda moving, waste, seen: seen["launches"] * seen["launch_us"]),
            spares=_all_but("one launch of a short kernel"),
        ),
        _suspect(
            "The cost of scattered access was computed from `must_move_bytes`: all `moved_bytes` are scattered.",
            _with(
                "scattered access",
                lambda moving, waste, seen: moving * (waste - 1) * seen["must_move_bytes"] / seen["moved_bytes"],
            ),
            spares=_all_but("more than two passes, all scattered"),
        ),
        _suspect(
            "The cost of few blocks was computed from `moving` alone: idle SMs also lengthen the part that scattered "
            "access adds. Multiply the product of `moving` and `sectors_per_access / sectors_needed`.",
            _with("few blocks", lambda moving, waste, seen: moving * (_idle(seen) - 1)),
            spares=_all_but("scattered access by half a grid"),
        ),
        _suspect(
            "The whole time was taken as the cost of scattered access. Its cost is the increase: subtract `moving`.",
            _with("scattered access", lambda moving, waste, seen: moving * waste),
            breaks=("three passes over the rows", "a kernel at its limit", "one launch of a short kernel"),
        ),
        _suspect(
            "More blocks than SMs were counted as a cost: only fewer blocks than SMs cost time.",
            _with("few blocks", lambda moving, waste, seen: moving * waste * abs(seen["sms"] / seen["blocks"] - 1)),
            spares=("a grid of a few blocks", "two passes by not quite enough blocks"),
            breaks=("three passes over the rows", "a kernel at its limit"),
        ),
        _suspect(
            "The whole time was taken as the cost of few blocks. Its cost is the increase: subtract the time with "
            "enough blocks.",
            _with("few blocks", lambda moving, waste, seen: moving * waste * _idle(seen)),
            breaks=("three passes over the rows", "two passes by not quite enough blocks"),
        ),
        _suspect(
            "The blocks were divided by the SMs: fewer blocks than SMs take `sms / blocks` times as long.",
            _with("few blocks", lambda moving, waste, seen: moving * waste * (seen["blocks"] / seen["sms"] - 1)),
            spares=("two passes by not quite enough blocks",),
            breaks=("a grid of a few blocks",),
        ),
        _suspect(
            "The ratios were compared, not the times. A thousand launches may cost less than one more read: compute "
            "what each cause costs in microseconds.",
            _by_ratio,
            breaks=("a kernel at its limit", "a hundred launches of long kernels", "a few launches more than one"),
        ),
        _suspect(
            "The first cause that is present was named. Compute what each one costs in microseconds, and name the "
            "largest.",
            _in_order,
            breaks=("a kernel at its limit", "a hundred launches of long kernels", "a few launches more than one"),
        ),
        _suspect(
            'If no cause costs a tenth of the time, the answer is "none".',
            _always_one,
            spares=tuple(name for name, (right, _) in KINDS.items() if right != "none"),
        ),
        _suspect(
            "All bytes were counted as repeated traffic. Only those beyond `must_move_bytes` are repeated: subtract "
            "the time to move these.",
            _with("repeated traffic", lambda moving, waste, seen: moving),
            breaks=("a kernel at its limit", "one launch of a short kernel"),
        ),
        _suspect(
            "The waste of scattered access is inverted: it moves `sectors_per_access / sectors_needed` times as much.",
            _inverted_waste,
            spares=_all_but(*_SCATTERED),
        ),
        _suspect(
            'Another share of the time was required: "none" is right only if no cause costs a tenth of `time_us`.',
            _half_required,
            spares=(
                *(name for name in KINDS if KINDS[name][0] == "none"),
                *("a launch per row", "three passes over the rows", "a warp along a column", "a grid of a few blocks"),
            ),
        ),
        _suspect(
            _UNIT.format("a thousand times as much"),
            _wrong_unit(1e-3),
            spares=("one launch of a short kernel",),
            breaks=("a kernel at its limit", "a few launches more than one"),
        ),
        _suspect(
            _UNIT.format("next to nothing"),
            _wrong_unit(1e6),
            breaks=("three passes over the rows", "a warp along a column"),
        ),
        _suspect(
            "The launches were left out. Each one after the first costs `launch_us`.",
            _launches_left_out,
            spares=_all_but("a launch per row", "scattered access to a small tensor"),
        ),
    ),
    hints=(
        "Compute four costs in microseconds, put them into a dict with the names as keys, and take the largest.",
        "`moving = moved_bytes / (1000 * copy_gbps)` is the time to move all bytes once. Scattered access multiplies "
        "it by `sectors_per_access / sectors_needed`, and idle SMs multiply that by `sms / blocks`.",
    ),
)
