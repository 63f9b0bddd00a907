"""Catch a lying benchmark: decide which of several unread benchmarks are sound from how they treat test functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Rules, Suspect
from grader.protocol.channel import from_bytes, to_bytes

LIES = (
    "no sync", "hot data", "cached result", "shrunken input", "other stream", "lower precision", "constant data",
    "slowed baseline", "dead code",
)  # fmt: skip
_STYLES = 9
ON_TRIAL = len(LIES) + _STYLES
_TEXT_BYTES = 1200
_SETS = ("first", "second", "third")
_HERE = "on this GPU"

# For each lie: the question that catches it, and its three variants.
_QUESTIONS = (
    "Is the claim right for two functions with known and very different times?",
    "Does a function get data that it, or the call just before, has already used?",
    "Is the claim right for two functions with known times?",
    "Does each function get data with the shape that `make_input` returned?",
    "Is the claim right for two functions with known and very different times?",
    "Do type and values match those from `make_input`, and is autocast off for `x.device.type`?",
    "Do the values match those from `make_input`?",
    "Does the baseline get the same data as the kernel, and is the claim right if the first call is slow?",
    "What does it claim for a kernel that does nothing after its first, correct result?",
)
_DOES = (
    ("waits for the GPU after the baseline, but not after the kernel", "waits for the GPU before the first clock "
     "reading, but not before the second", "waits only for the first of the kernel's calls"),
    ("passes the same tensor to every call", "alternates between two tensors",
     "passes each tensor to the kernel right after the baseline has read it"),
    ("looks up the kernel's results instead of computing them", "looks up every second result instead of computing it",
     "computes only the kernel's first result and reuses it for all calls"),
    ("gives the kernel half of the data", "gives the kernel three quarters of the data",
     "gives the kernel every second row, after complete data in the first calls"),
    ("runs the kernel on one stream and waits for another", "runs the kernel on a different stream from its events",
     "records its events on a different stream from the work"),
    ("gives the kernel bfloat16 data", "rounds the kernel's data to bfloat16 and back",
     "runs the kernel under autocast"),
    ("passes zeros", "fills each tensor with its first value", "fills seven eighths of each tensor with one value"),
    ("runs the baseline twice for each counted call", "gives the baseline data with gaps between the elements",
     "warms up the kernel, but not the baseline"),
    ("checks no result", "checks only the first results", "checks only the shapes of the results"),
)  # fmt: skip
_SOUND = (
    "times each call with the host's clock",
    "times all calls together with the host's clock",
    "times each call with events",
    "times all calls together with events",
    "runs everything on its own stream and waits for it",
    "passes copies of the data from `make_input`, all with the same values,",
    "warms up one of the two for longer",
    "alternates between kernel and baseline, each on data that has left the cache,",
    "times more calls of one of the two and divides by their number",
)


def _case(name: str) -> Case:
    return Case(name, (Array("trials", (_TEXT_BYTES,), "uint8"), Array("out", (ON_TRIAL,), role="out")))


def _hear(entry: Any, trials: Any, out: Any) -> None:
    import torch

    from grader.protocol.channel import from_bytes
    from grader.worker.harnesses.benchmark_machine import PretendGpu, ThisMachine
    from grader.worker.harnesses.benchmarks_on_trial import bring

    heard = from_bytes(trials)
    this = ThisMachine() if heard["here"] else None
    found = []
    for numbers in heard["trials"]:
        sound = entry(bring(numbers), this or PretendGpu())
        if sound not in (True, False):
            raise TypeError(f"it returned {sound!r}: return True for a sound benchmark and False for one that lies")
        found.append(float(sound))
    out.copy_(torch.tensor(found))


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    chance = random.SystemRandom()
    ways = [_SETS.index(case.name.split()[0])] * len(LIES) if case.name != _HERE else chance.choices(range(3), k=9)
    kinds = [(number, way) for number, way in enumerate(ways, 1)] + [(0, style) for style in range(_STYLES)]
    chance.shuffle(kinds)
    trials = [[kind, way, chance.choice((6, 8, 10)), chance.randint(1, 3), _watch(kind, way, chance),
               chance.randrange(2), chance.randrange(2)] for kind, way in kinds]  # fmt: skip
    return {"trials": to_bytes({"here": case.name == _HERE, "trials": trials}, _TEXT_BYTES)}


def _watch(kind: int, way: int, chance: random.Random) -> int:
    """A stopwatch: each of the four once for the sound benchmarks, a random one for the others."""
    return way if kind == 0 and way < 4 else chance.randrange(4)


def _truth(inputs: Any) -> Any:
    import torch

    return torch.tensor([float(kind == 0) for kind, *_ in _trials(inputs)], dtype=torch.float64)


def _trials(inputs: Any) -> list[list[int]]:
    return from_bytes(inputs["trials"])["trials"]  # type: ignore[no-any-return]


def _all(answer: float) -> Callable[[Any], Any]:
    return lambda a: a["expected"] * 0 + answer


def _wrong_at(kind: int, way: int) -> Callable[[Any], Any]:
    """The output, if it misjudges the benchmark of this kind. The report names the first such suspect."""

    def output(a: Any) -> Any:
        found = [trial[:2] for trial in _trials(a)]
        if [kind, way] not in found:
            return None
        at = found.index([kind, way])
        alone = a["expected"].clone()
        alone[at] = 1 - alone[at]
        got = a.get("got", alone)
        return got if got[at] == alone[at] else None

    return output


_MISSED = tuple(
    Suspect(f"A benchmark that {does} was called sound ({LIES[kind]}). {question}", _wrong_at(kind + 1, way))
    for kind, question in enumerate(_QUESTIONS)
    for way, does in enumerate(_DOES[kind])
)
_ADVICE = {
    5: "Compare values, not objects. An address identifies data only as long as you keep the tensor.",
    6: "A sound benchmark may call a function any number of times.",
    7: "Data is hot for a function that has used it before, or right after a call on the same data. Otherwise it is "
    "cold.",
    8: "A sound benchmark may call a function any number of times.",
}
_ACCUSED = tuple(
    Suspect(
        f"A benchmark that {does} was accused, but it is sound. {_ADVICE.get(style, '')}".strip(), _wrong_at(0, style)
    )
    for style, does in enumerate(_SOUND)
)

_PRETENDED = tuple(_case(f"{which} set, on a pretend GPU") for which in _SETS)

AUDIT = Exercise(
    id="audit",
    title="Catch a lying benchmark",
    chapter="01_profiling",
    notebook="06_catch_a_lying_benchmark",
    entry="audit",
    parameters=("benchmark", "machine"),
    backend="torch",
    cases=(*_PRETENDED, _case(_HERE)),
    simulator_cases=_PRETENDED,
    timed_cases=(),
    plot_cases=(),
    oracle=_truth,
    budget=Budget(absolute=1e-6, relative=0.0),
    bytes_moved=lambda case: 1,
    operations=lambda case: 1,
    correctness_points=5,
    suspects=(
        Suspect("Every benchmark was called sound. Half of them lie.", _all(1.0)),
        Suspect(
            "Every benchmark was accused. Half of them are sound: try your tests on the notebook's sound one.",
            _all(0.0),
        ),
        *_MISSED,
        *_ACCUSED,
    ),
    rules=Rules(handed=True),
    harness=_hear,
    draw=_draw,
    answers=tuple(f"benchmark {number}" for number in range(1, ON_TRIAL + 1)),
    answer_words=("lies", "sound"),
    hints=(
        "You choose kernel, baseline and data, so you know what an honest benchmark must claim.",
        "Let your functions record what they get: the tensor's address, shape, type, values and strides.",
        "A claim is never exact: launching and waiting take time as well. Accept 2.5 to 3.5 for 3.",
        "A sound benchmark may use any clock, call one function more often than the other, and pass copies.",
    ),
    time_limit_s=60.0,
)
