"""Catch a lying benchmark: say of benchmarks that nobody has read which are sound, by what they do to spies."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Rules, Suspect

LIES = (
    "no sync",
    "hot data",
    "cached result",
    "shrunken input",
    "other stream",
    "lower precision",
    "constant data",
    "slowed baseline",
    "dead code",
)
_STYLES = 9
ON_TRIAL = len(LIES) + _STYLES
_TEXT_BYTES = 1200
_SETS = ("first", "second", "third")
_HERE = "on this GPU"

# By lie: the question that catches it, and what its three variants do.
_QUESTIONS = (
    "Does the claim hold for two functions whose times you chose, far apart?",
    "Is a function handed data that it, or the call just before, has touched?",
    "Does the claim hold for two functions whose times you chose?",
    "Has the data that each function gets the shape of what `make_input` made?",
    "Does the claim hold for two functions whose times you chose, far apart?",
    "Are type and values those of what `make_input` made, and is autocast off for `x.device.type`?",
    "Are the values those of what `make_input` made?",
    "Does the baseline get what the kernel gets, and does the claim hold where the first call is slow?",
    "What does it claim for a kernel that does nothing, after a first right answer?",
)
_DOES = (
    ("waits for the GPU after the baseline, but not after the kernel", "waits for the GPU before the first clock "
     "reading, but not before the second", "waits for the first of the kernel's calls only"),
    ("hands the same tensor to every call", "hands two tensors to all calls, in turn",
     "hands each tensor to the kernel just after the baseline has read it"),
    ("looks the kernel's results up instead of computing them", "looks every second result up instead of computing it",
     "computes the kernel's first result only, and uses it for all calls"),
    ("gives the kernel half of the data", "gives the kernel three quarters of the data",
     "gives the kernel every second row, after whole data in the first calls"),
    ("runs the kernel on another stream than the one that it waits for",
     "runs the kernel on another stream than its events", "records its events on another stream than the work"),
    ("gives the kernel bfloat16", "rounds the kernel's data to bfloat16 and back", "runs the kernel under autocast"),
    ("hands out zeros", "fills each tensor with its first value", "fills seven eighths of each tensor with one value"),
    ("runs the baseline twice for each time that it counts", "gives the baseline data with gaps between the elements",
     "warms up the kernel, but not the baseline"),
    ("looks at no result", "looks at the first results only", "looks at the shapes of the results only"),
)  # fmt: skip
_SOUND = (
    "times each call by the host's clock",
    "times all calls together by the host's clock",
    "times each call by events",
    "times all calls together by events",
    "runs everything on a stream of its own, and waits for that stream",
    "hands out copies of what `make_input` made, each with the same values,",
    "warms up one of the two for longer",
    "times kernel and baseline by turns, each call on data that others have long gone over",
    "times more calls of one of the two, and divides by their number",
)


def _case(name: str) -> Case:
    arrays = (Array("trials", (_TEXT_BYTES,), "uint8"), Array("out", (ON_TRIAL,), role="out"))
    return Case(name, arrays)


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
            raise TypeError(f"it returned {sound!r}: return True for a sound benchmark, and False for one that lies")
        found.append(float(sound))
    out.copy_(torch.tensor(found))


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    from grader.protocol.channel import to_bytes

    chance = random.SystemRandom()
    ways = [_SETS.index(case.name.split()[0])] * len(LIES) if case.name != _HERE else chance.choices(range(3), k=9)
    kinds = [(number, way) for number, way in enumerate(ways, 1)] + [(0, style) for style in range(_STYLES)]
    chance.shuffle(kinds)
    trials = [[kind, way, chance.choice((6, 8, 10)), chance.randint(1, 3), _watch(kind, way, chance),
               chance.randrange(2), chance.randrange(2)] for kind, way in kinds]  # fmt: skip
    return {"trials": to_bytes({"here": case.name == _HERE, "trials": trials}, _TEXT_BYTES)}


def _watch(kind: int, way: int, chance: random.Random) -> int:
    """Each of the four stopwatches once among the sound ones, and elsewhere any."""
    return way if kind == 0 and way < 4 else chance.randrange(4)


def _truth(inputs: Any) -> Any:
    import torch

    return torch.tensor([float(kind == 0) for kind, *_ in _trials(inputs)], dtype=torch.float64)


def _trials(inputs: Any) -> list[list[int]]:
    from grader.protocol.channel import from_bytes

    return from_bytes(inputs["trials"])["trials"]  # type: ignore[no-any-return]


def _all(answer: float) -> Callable[[Any], Any]:
    return lambda a: a["expected"] * 0 + answer


def _wrong_at(kind: int, way: int) -> Callable[[Any], Any]:
    """What was got, if the benchmark of this kind was misjudged, whatever else was: the first suspect is named."""

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
    5: "Compare values, not objects; and an address stands for the same data only as long as you keep the tensor.",
    6: "How often it calls a function is its own affair.",
    7: "Data is hot for a function that has had it before, and after a call on the same data; else it is cold.",
    8: "How often it calls a function is its own affair.",
}
_ACCUSED = tuple(
    Suspect(
        f"A benchmark that {does} was accused, and it is sound. {_ADVICE.get(style, '')}".strip(), _wrong_at(0, style)
    )
    for style, does in enumerate(_SOUND)
)

AUDIT = Exercise(
    id="audit",
    title="Catch a lying benchmark",
    chapter="01_profiling",
    notebook="05_catch_a_lying_benchmark",
    entry="audit",
    parameters=("benchmark", "machine"),
    backend="torch",
    cases=(*(_case(f"{which} set, on a pretend GPU") for which in _SETS), _case(_HERE)),
    simulator_cases=tuple(_case(f"{which} set, on a pretend GPU") for which in _SETS),
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
            "Every benchmark was accused. Half of them are sound: try your probes on the notebook's sound one.",
            _all(0.0),
        ),
        *_MISSED,
        *_ACCUSED,
    ),
    rules=Rules(handed=("benchmark", "machine"), methods=("machine",)),
    harness=_hear,
    draw=_draw,
    answers=tuple(f"benchmark {number}" for number in range(1, ON_TRIAL + 1)),
    hints=(
        "You choose kernel, baseline and data, so you know what an honest benchmark must claim.",
        "Let your functions write down what they are handed: the tensor's address, shape, type, values and strides.",
        "A claim is never exact: a launch and a wait take time as well. Accept 2.5 to 3.5 for 3.",
        "A sound benchmark may use any clock, call one function more often than the other, and hand out copies.",
    ),
    time_limit_s=60.0,
)
