"""Predict a time from bytes and operations: the roofline as a formula, on invented machines and on this one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Suspect
from grader.protocol.channel import from_bytes, to_bytes

KINDS = ("copy", "relu", "add", "sum", "matmul", "convert", "add_row", "batched matmul")
_AGAIN = "copy, on a machine twice as fast"
_MEASURED = 5  # the first of KINDS, which a good kernel brings to a ceiling on any GPU
_TEXT_BYTES = 3000
_TRIES = 3  # in case the machine was disturbed during the measurement
_COUNTED = Budget(absolute=0.0, relative=0.04)  # exact if nothing is measured

_Asked = tuple[dict[str, Any], dict[str, float]]  # an operation and the machine that runs it

_LARGE = "an invented machine, its matrix product limited by arithmetic"
_RIDGE = "an invented machine, its matrix product near the ridge"
_SLOW = "an invented machine, slow at arithmetic"
_HERE = "this machine, timed"


def _case(name: str, answers: int = len(KINDS) + 1, measured: bool = False) -> Case:
    arrays = (Array("question", (_TEXT_BYTES,), "uint8"), Array("out", (answers,), role="out"))
    return Case(name, arrays, measured=measured, budget=None if measured else _COUNTED, tries=_TRIES if measured else 1)


def _answer_all(entry: Any, question: Any, out: Any) -> None:
    import torch

    from grader.protocol.channel import from_bytes

    asked = from_bytes(question)
    found = [entry(operation, machine) for operation, machine in asked]
    for milliseconds in found:
        if milliseconds is None or isinstance(milliseconds, str):
            kind = "None" if milliseconds is None else f"the text {milliseconds!r:.40}"
            raise TypeError(f"it returned {kind}: return the milliseconds as a number")
    out.copy_(torch.tensor([float(milliseconds) for milliseconds in found]))


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    chance = random.SystemRandom()
    if case.measured:
        here = _ceilings(machine.copy_gbps, machine.peak_tflops)
        asked = [(operation, here) for operation in large_operations(chance)]
    else:
        asked = _invented(case.name, chance)
    return {"question": to_bytes(asked, _TEXT_BYTES)}


def _ceilings(gbps: float, tflops: float) -> dict[str, float]:
    return {"bandwidth_gbps": round(gbps, 3), "tflops": round(tflops, 6)}


def _invented(name: str, chance: random.Random) -> list[_Asked]:
    """Operations and a machine for which every mistake changes some time by a factor of at least 1.33."""
    among = chance.randrange
    operations = [
        {"kind": "copy", "shape": _shape(chance), "dtype": chance.choice(("float16", "float64", "uint8"))},
        {"kind": "relu", "shape": _shape(chance), "dtype": chance.choice(("float16", "float64"))},
        {"kind": "add", "shape": _shape(chance), "dtype": chance.choice(("float16", "float32", "float64"))},
        {"kind": "sum", "shape": _shape(chance), "dtype": chance.choice(("float16", "float32"))},
        _product(among(3072, 8192), among(3072, 8192), among(512, 1024)),
        {"kind": "convert", "shape": _shape(chance), **_types(chance)},
        {"kind": "add_row", "shape": _shape(chance), "dtype": chance.choice(("float16", "float32"))},
        _product(among(1024, 2048), among(1024, 2048), among(16, 32), batch=among(32, 128)),
    ]
    large, thin = (_intensity(operations[index]) for index in (4, 7))
    ridge = {  # operations per byte at which both ceilings take equally long
        _LARGE: lambda: large / chance.uniform(3, 8),
        _RIDGE: lambda: large / chance.uniform(1.1, 1.4),
        _SLOW: lambda: thin / chance.uniform(1.4, 2),
    }[name]()
    gbps = math.exp(chance.uniform(math.log(200), math.log(9000)))
    slow, fast = (_ceilings(times * gbps, times * gbps * ridge / 1e3) for times in (1, 2))
    return [*((operation, slow) for operation in operations), (operations[0], fast)]


def _shape(chance: random.Random) -> list[int]:
    return [chance.randrange(1000, 16_000) for _ in range(2)]


def _types(chance: random.Random) -> dict[str, str]:
    dtype, to = chance.choice(
        (("float32", "float16"), ("float16", "float32"), ("float64", "float16"), ("uint8", "float32"))
    )
    return {"dtype": dtype, "to": to}


def _product(m: int, n: int, k: int, batch: int = 1) -> dict[str, Any]:
    return {"kind": "matmul", "batch": batch, "m": m, "n": n, "k": k, "dtype": "float16"}


def large_operations(chance: random.Random) -> list[dict[str, Any]]:
    """Operations with far more traffic than an L2 cache holds: at least 0.1 ms on any GPU, tensors up to 512 MiB."""

    def of(kind: str, dtype: str, most_mib: int) -> dict[str, Any]:
        columns, size = 1024 * chance.randrange(4, 9), {"float16": 2, "float32": 4}[dtype]
        rows = int(chance.uniform(0.7, 1) * most_mib * 2**20 / columns / size)
        return {"kind": kind, "shape": [rows, columns], "dtype": dtype}

    either = ("float16", "float32")
    sides = (chance.choice((4096, 6144, 8192)) for _ in range(3))
    return [
        of("copy", chance.choice(either), 512),
        of("relu", chance.choice(either), 512),
        of("add", chance.choice(either), 384),
        of("sum", "float32", 512),
        _product(*sides),
    ]


def _time_it(operation: Any, machine: Any) -> Any:
    from grader.worker.harnesses.timed_work import time_on_gpu

    return time_on_gpu(operation)


_BYTES = {"uint8": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


def _counts(operation: dict[str, Any], bug: str = "") -> tuple[float, float, float]:
    """Bytes read, bytes written, and operations, as counted with this bug."""
    size = _BYTES[operation["dtype"]]
    written_size = _BYTES[operation.get("to", operation["dtype"])]
    if bug == "always four bytes":
        size = written_size = 4
    elif bug == "elements":
        size = written_size = 1
    elif bug == "same type":
        written_size = size
    elif bug == "read as written":
        size = written_size
    if operation["kind"] == "matmul":
        m, n, k = operation["m"], operation["n"], operation["k"]
        batch = 1 if bug == "no batch" else operation["batch"]
        computed = (1 if bug == "no additions" else 2) * m * n * k
        return batch * (m * k + k * n) * size, batch * m * n * size, computed * (1 if bug == "one computed" else batch)
    elements, columns = math.prod(operation["shape"]), operation["shape"][-1]
    if bug == "sizes added":
        elements = sum(operation["shape"])
    row = elements if bug == "whole row matrix" else columns
    one = bug == "one input"
    read = elements + {"add": 0 if one else elements, "add_row": 0 if one else row}.get(operation["kind"], 0)
    written = 1 if operation["kind"] == "sum" and bug != "sum writes all" else elements
    return read * size, written * written_size, 0 if operation["kind"] in ("copy", "convert") else elements


def _intensity(operation: dict[str, Any]) -> float:
    read, written, operations = _counts(operation)
    return operations / (read + written)


def milliseconds(operation: dict[str, Any], machine: dict[str, float], bug: str = "") -> float:
    """The longer of two times: to move the operation's bytes, or to compute its operations."""
    read, written, operations = _counts(operation, bug)
    moved = {"reads only": read, "writes only": written}.get(bug, read + written)
    per_s = {"gibibytes": 2**30, "gigabits": 1e9 / 8, "megabytes": 1e6}.get(bug, 1e9)
    memory_ms = 1e3 * moved / (machine["bandwidth_gbps"] * per_s)
    compute_ms = 1e3 * operations / (machine["tflops"] * (1e9 if bug == "gigaflops" else 1e12))
    if bug in ("memory only", "arithmetic only"):
        return memory_ms if bug == "memory only" else compute_ms
    return {"sum": memory_ms + compute_ms, "min": min(memory_ms, compute_ms)}.get(bug, max(memory_ms, compute_ms))


def _predicted(inputs: Any, bug: str = "") -> Any:
    import torch

    found = [milliseconds(operation, machine, bug) for operation, machine in from_bytes(inputs["question"])]
    return torch.tensor(found, dtype=torch.float64, device=inputs["question"].device)


_CLEAR = 0.3  # near the ridge, other bugs give the same result


def _shows(bug: str, least: float = 0.02) -> Callable[[Any], Any]:
    """A suspect's output: the bug's value for times that it changes by `least`, the submission's for the others."""

    def output(a: Any) -> Any:
        import torch

        buggy, right = _predicted(a, bug), _predicted(a)
        where = (buggy / right - 1).abs() > least
        if bug in ("min", "arithmetic only"):  # other operations may be counted in more than one way
            products = [operation["kind"] == "matmul" for operation, _ in from_bytes(a["question"])]
            where &= torch.tensor(products, device=where.device)
            if not bool((where & (right == _predicted(a, "memory only"))).any()):
                return None
        return buggy.where(where, a.get("got", right)) if bool(where.any()) else None

    return output


def _same_everywhere(a: Any) -> Any:
    right = _predicted(a)
    if len(right) <= len(KINDS):  # only this machine
        return None
    got = a["got"] if "got" in a else right[[*range(len(KINDS)), 0]]
    return got if abs(float(got[-1] / got[0]) - 0.5) > 0.01 else None


def _powers_of_ten(a: Any) -> Any:
    import torch

    right = _predicted(a)
    got = a.get("got", 1e3 * right)
    power = (got / right).log10()
    off = (power.round().abs() >= 1) & ((power - power.round()).abs() < 1e-3)
    return torch.where(off, got, float("nan"))


PREDICT_MS = Exercise(
    id="predict_ms",
    title="Predict a time",
    chapter="01_profiling",
    notebook="04_draw_the_roofline",
    entry="predict_ms",
    parameters=("operation", "machine"),
    backend="torch",
    cases=(_case(_LARGE), _case(_RIDGE), _case(_SLOW), _case(_HERE, _MEASURED, measured=True)),
    simulator_cases=(_case(_LARGE), _case(_RIDGE), _case(_SLOW)),
    timed_cases=(),
    plot_cases=(),
    oracle=_predicted,
    budget=Budget(absolute=0.0, relative=0.25),
    bytes_moved=lambda case: _TEXT_BYTES,
    operations=lambda case: 0,
    correctness_points=4,
    suspects=(
        Suspect("These are seconds. A second has 1,000 milliseconds.", lambda a: 1e-3 * _predicted(a)),
        Suspect(
            "Every answer is off by a power of ten. 1 GB/s is 1e9 bytes per second, 1 TFLOPS is 1e12 operations per "
            "second, and a second has 1,000 milliseconds.",
            _powers_of_ten,
        ),
        Suspect(
            "The answer does not depend on `machine`: a machine that is twice as fast needs half the time. Count, "
            "and divide by the machine's values. Do not measure, and do not hard-code your own machine's ceilings.",
            _same_everywhere,
        ),
        Suspect("1 TFLOPS is 1e12 operations per second, not 1e9.", _shows("gigaflops")),
        Suspect("1 GB/s is 1e9 bytes per second, not 1e6.", _shows("megabytes")),
        Suspect("1 GB/s is 1e9 bytes per second; 2**30 bytes are one GiB, 7 % more.", _shows("gibibytes")),
        Suspect(
            "`bandwidth_gbps` is in gigabytes per second, not in gigabits: do not divide it by 8, and count bytes, not "
            "bits.",
            _shows("gigabits"),
        ),
        Suspect("The two times were added. They overlap, so use the longer one.", _shows("sum")),
        Suspect("The shorter of the two times was used: use the longer one.", _shows("min")),
        Suspect("Only reads were counted: the result is written to memory as well.", _shows("reads only")),
        Suspect("Only writes were counted: the inputs are read from memory as well.", _shows("writes only")),
        Suspect(
            "The sizes in `shape` were added. The number of elements is their product, `math.prod(shape)`.",
            _shows("sizes added", least=_CLEAR),
        ),
        Suspect("Elements were counted, not bytes: a float16 element has two bytes.", _shows("elements")),
        Suspect("Every element was counted as 4 bytes: the size depends on `dtype`.", _shows("always four bytes")),
        Suspect(
            "The arithmetic is missing: a large matrix product takes longer to compute than to move.",
            _shows("memory only", least=_CLEAR),
        ),
        Suspect(
            "Traffic of the matrix products is missing: both matrices and the result, of each product in a `batch`. "
            "Except for large products, moving takes longer than computing.",
            _shows("arithmetic only"),
        ),
        Suspect(
            "A matrix product has m · n · k multiplications and as many additions: did you count both?",
            _shows("no additions", least=_CLEAR),
        ),
        Suspect("The `batch` of the matrix product is missing: it is the number of products.", _shows("no batch")),
        Suspect(
            "The operations of one matrix product were counted: multiply them by `batch`, as the bytes.",
            _shows("one computed"),
        ),
        Suspect("`add` reads two tensors, but only one was counted.", _shows("one input")),
        Suspect(
            "The row in `add_row` was counted as a whole matrix. It has `shape[1]` elements.",
            _shows("whole row matrix"),
        ),
        Suspect(
            "`convert` writes elements of type `to`, which have a different size than those it reads.",
            _shows("same type"),
        ),
        Suspect(
            "`convert` reads elements of type `dtype`: only the elements it writes have type `to`.",
            _shows("read as written"),
        ),
        Suspect("`sum` writes a single element, not as many as it reads.", _shows("sum writes all")),
    ),
    hints=(
        "First count the elements of every input and of the result. Then multiply by the bytes per element.",
        '`getattr(torch, "float16").itemsize` is 2.',
        "bytes / (GB/s · 1e9) is a time in seconds, and so is operations / (TFLOPS · 1e12). Use the longer one.",
        "You do not need to run anything: the machine in the question may be a different one.",
    ),
    harness=_answer_all,
    draw=_draw,
    measure=_time_it,
    answers=(*KINDS, _AGAIN),
)
