"""The corpus of slow work on a GPU: which cause is named, and whether its cure brings what was predicted.

    python -m benchmarks slow
    python -m benchmarks slow:again
    python -m benchmarks slow:why
    python -m benchmarks.slow simulator|cuda [--at-once N]
    python -m benchmarks.slow show|record

The first three need a GPU. `slow:again` times `explain` twice on each text that took long. `slow:why` times what a
class pays: grading a slow text, and then its causes. The fourth form gathers only the evidence of one device. `show`
prints what the evidence so far says about each file, and `record` makes the rows from it again, after a change to the
causes.

The evidence about each text is a line of `results/slow/<gpu or simulator>.jsonl`. A later run gathers only what is new
or changed.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from benchmarks.limits import Limit, keep, kept
from benchmarks.rows import Recorder, commit, file_stem
from grader.authoring.stubs import solution
from grader.bottleneck.cause import sentence
from grader.bottleneck.diagnosis import causes
from grader.bottleneck.evidence import Evidence
from grader.bottleneck.time_model import headroom
from grader.errors import GraderError
from grader.exercises import find
from grader.hardware import gpus
from grader.judge.gpu.ceilings import Machine
from grader.judge.service import Judge, evidence_of
from grader.results import RESULTS
from grader.verdict import Cause
from tests.honest import corpus as honest
from tests.slow.corpus import Slow, corpus

EVIDENCE = RESULTS / "slow"
_FILE_S = 8.0  # a file is not begun with less time left
_AT_ONCE = 6  # simulators
_HONEST = 2  # fast submissions of each exercise
_COMPILES_LONG = ("spilling_tile", "float32_tiles", "no_dot")
_NEAR = 0.25  # of the reached gain
_FIRST = 2  # causes that count as named
_LONG_S = 10.0  # of an `explain` that `again` repeats
_READING_S = 15.0  # between two of them: a learner reads the answer and changes the cell

Device = Literal["cuda", "simulator"]


@dataclass(frozen=True)
class Text:
    """A text to ask about. `name` begins with slow, reference or honest."""

    name: str
    exercise: str
    source: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()


def texts() -> list[Text]:
    """The corpus, each exercise after its reference; then fast honest work; last what compiles for a minute."""
    slow_ones = corpus()
    exercises = list(dict.fromkeys(each.exercise for each in slow_ones))
    found = []
    for exercise in exercises:
        found.append(Text(f"reference/{exercise}", exercise, solution(exercise)))
        found += [Text(f"slow/{each.name}", exercise, each.source) for each in slow_ones if each.exercise == exercise]
    for exercise in exercises:
        fast = [each for each in honest.corpus() if each.fast and each.exercise == exercise and not each.lacks]
        found += [Text(f"honest/{each.name}", exercise, each.source) for each in fast[:_HONEST]]
    return sorted(found, key=lambda text: any(word in text.name for word in _COMPILES_LONG))


def gather(device: Device, wanted: Sequence[Text], limit: Limit, at_once: int = 1) -> None:
    """Gather what is missing of the evidence of one device, several at a time where nothing is timed."""
    known = _known(device)
    missing = [each for each in wanted if each.name not in known or known[each.name]["sha256"] != each.sha256]
    with ThreadPoolExecutor(at_once) as pool:
        for part in [pool.submit(_gather, device, missing[at::at_once], limit) for at in range(at_once)]:
            part.result()


def _gather(device: Device, wanted: Sequence[Text], limit: Limit) -> None:
    with Judge(device) as judge:
        judge.expect([(each.source, each.exercise) for each in wanted])
        for each in wanted:
            if not limit.allows(_FILE_S):
                print(f"{each.name} and those after it are left for the next run: no time is left.")
                return
            begun = time.monotonic()
            try:
                claims = judge.claims(each.source, each.exercise)
            except GraderError as error:
                print(f"{each.name}: {error}", flush=True)
                continue
            seconds = round(time.monotonic() - begun, 2)
            print(f"{device:10} {each.name:44} {seconds:6.1f} s", flush=True)
            row = {"name": each.name, "sha256": each.sha256, "seconds": seconds, "commit": commit()}
            keep(_path(device), row | {"date": datetime.now(UTC).date().isoformat(), "claims": claims})


def _path(device: Device) -> Path:
    """Return the file of the simulator, of the GPU that is here, or of the first GPU with a file."""
    EVIDENCE.mkdir(exist_ok=True)
    if device == "simulator":
        return EVIDENCE / "simulator.jsonl"
    here = [file_stem(gpu.name) for gpu in gpus()[:1]]
    others = sorted(path.stem for path in EVIDENCE.glob("nvidia-*.jsonl"))
    return EVIDENCE / f"{(here + others)[0]}.jsonl"


def _known(device: Device) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in kept(_path(device))}


@dataclass(frozen=True)
class Answer:
    """The result for a text: causes with a GPU and without one, and the GPU's time of the largest case."""

    text: Text
    with_gpu: tuple[Cause, ...]
    without: tuple[Cause, ...]
    us: float | None
    case: str
    headroom: float | None
    seconds: float
    gpu: str


def _answer(text: Text, on_gpu: dict[str, Any], simulated: dict[str, Any] | None) -> Answer:
    exercise = find(text.exercise)
    seen = Evidence.of_claims(exercise, on_gpu["claims"])
    beside = [] if simulated is None else [Evidence.of_claims(exercise, simulated["claims"])]
    return Answer(
        text,
        causes(exercise, text.source, seen, *beside),
        causes(exercise, text.source, *beside),
        seen.largest.us if seen.largest is not None else None,
        seen.largest.case.name if seen.largest is not None else "",
        headroom(exercise, seen),
        on_gpu["seconds"],
        seen.gpu,
    )


def answers(wanted: Sequence[Text]) -> dict[str, Answer]:
    """Return what the evidence so far says, by name."""
    on_gpu, simulated = _known("cuda"), _known("simulator")
    return {each.name: _answer(each, on_gpu[each.name], simulated.get(each.name)) for each in wanted
            if each.name in on_gpu}  # fmt: skip


def slow(recorder: Recorder) -> None:
    """Rows `slow`, one case per file: the rank of its cause, and the predicted and the reached gain; then totals."""
    limit, wanted = Limit(900), texts()
    gather("cuda", wanted, limit)
    gather("simulator", wanted, limit, _AT_ONCE)
    _record(recorder, answers(wanted))


def _record(recorder: Recorder, found: dict[str, Answer]) -> None:
    named = without = near = measured = 0
    every = [each for each in corpus() if f"slow/{each.name}" in found]
    for each in every:
        answer = found[f"slow/{each.name}"]
        rank, rank_without = _rank(each, answer.with_gpu), _rank(each, answer.without)
        recorder.add("slow", each.name, "rank_of_cause", "1", rank)
        recorder.add("slow", each.name, "rank_without_gpu", "1", rank_without)
        named += 0 < rank <= _FIRST
        without += 0 < rank_without <= _FIRST
        brings = reached(each, found)
        said = predicted(each, answer)
        if brings is not None:
            recorder.add("slow", each.name, "reached_gain", "1", brings)
        if said is not None:
            recorder.add("slow", each.name, "predicted_gain", "1", said)
        measured += brings is not None
        near += brings is not None and said is not None and abs(said / brings - 1) <= _NEAR
    fast = [answer for name, answer in found.items() if not name.startswith("slow/")]
    recorder.add("slow", "all", "files", "1", len(every))
    recorder.add("slow", "all", "causes_named", "1", named)
    recorder.add("slow", "all", "causes_named_without_gpu", "1", without)
    recorder.add("slow", "all", "gains_reached", "1", measured)
    recorder.add("slow", "all", "gains_predicted", "1", near)
    recorder.add("slow", "fast work", "files", "1", len(fast))
    recorder.add("slow", "fast work", "false_causes", "1", sum(bool(answer.with_gpu) for answer in fast))


def predicted(each: Slow, answer: Answer) -> float | None:
    """Return how many times as fast the twin should be: by its one cause, or by all if the twin is a reference."""
    gains = {cause.kind: cause.at_most or 1.0 for cause in answer.with_gpu}
    if each.cause not in gains:
        return None
    return gains[each.cause] if "/" in each.twin else math.prod(gains.values())


def _rank(each: Slow, found: Sequence[Cause]) -> int:
    kinds = [cause.kind for cause in found]
    return kinds.index(each.cause) + 1 if each.cause in kinds else 0


def reached(each: Slow, found: dict[str, Answer]) -> float | None:
    """How many times as fast the twin is in the largest case."""
    kind = "slow" if "/" in each.twin else "reference"
    own, twin = found[f"slow/{each.name}"], found.get(f"{kind}/{each.twin or each.exercise}")
    if twin is None or twin.case != own.case or not own.us or not twin.us:
        return None
    return own.us / twin.us


def _show() -> None:
    found, slow_ones = answers(texts()), {f"slow/{each.name}": each for each in corpus()}
    for name, answer in found.items():
        print(f"{name}  {answer.us or 0:.1f} µs  headroom {answer.headroom or 0:.2f}  {answer.seconds:.1f} s")
        if name in slow_ones:
            brings = reached(slow_ones[name], found)
            said = predicted(slow_ones[name], answer)
            print(f"    {slow_ones[name].cause}: reached {brings or 0:.2f}, predicted {said or 0:.2f}")
        print(*(f"    {cause.kind}: {sentence(cause)}" for cause in answer.with_gpu), sep="\n")
        print(f"    without a GPU: {[cause.kind for cause in answer.without]}")


def _machine() -> tuple[Machine, str, str]:
    """Return the machine of the GPU's evidence, and the commit and the date of its last line."""
    last = kept(_path("cuda"))[-1]
    claims = last["claims"]
    names = {name: claims[name] for name in ("gpu", "driver", "torch", "copy_gbps", "peak_tflops", "multiprocessors")}
    return Machine(device="cuda", triton="", python="", l2_bytes=0, **names), last["commit"], last["date"]


def again(recorder: Recorder) -> None:
    """Rows `slow/seconds`: the first and the second `explain` of each text whose evidence took long on the GPU."""
    limit = Limit(900)
    long = [text for text in texts() if _known("cuda").get(text.name, {}).get("seconds", 0) > _LONG_S]
    with Judge("cuda") as judge, Judge("simulator") as beside:
        for each in judge, beside:
            each.claims(solution("vector_add"), "vector_add")  # the session is warm
        for text in long:
            for number in ("first", "second"):
                if not limit.allows(_READING_S + _FILE_S):
                    print(f"{text.name} and those after it were not explained: no time is left.")
                    return
                time.sleep(_READING_S)
                begun = time.monotonic()
                evidence_of([judge, beside], text.source, text.exercise)
                seconds = time.monotonic() - begun
                print(f"{text.name:40} {number} {seconds:6.1f} s", flush=True)
                recorder.add("slow/seconds", text.name, f"{number}_s", "s", seconds)


def why(recorder: Recorder) -> None:
    """Rows `slow/why`: grading one slow text of each exercise, and then asking the simulator for its causes."""
    limit, slow_ones = Limit(600), {each.exercise: each for each in reversed(corpus())}
    with Judge("cuda") as judge:
        for each in slow_ones.values():
            if not limit.allows(_FILE_S):
                print(f"{each.name} and those after it were not graded: no time is left.")
                return
            begun = time.monotonic()
            verdict = judge.grade(each.source, each.exercise)
            graded = time.monotonic()
            judge.with_why(verdict, each.source)
            seconds = time.monotonic() - graded
            missed = any(gate.outcome == "failed" for gate in verdict.gates)
            print(
                f"{each.name:40} {graded - begun:6.1f} s {seconds:6.1f} s {'' if missed else 'no gate missed'}",
                flush=True,
            )
            if missed:
                recorder.add("slow/why", each.name, "grade_s", "s", graded - begun)
                recorder.add("slow/why", each.name, "why_s", "s", seconds)


def main(arguments: Sequence[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow")
    parser.add_argument("what", choices=["simulator", "cuda", "show", "record"])
    parser.add_argument("--at-once", type=int, default=1, help="how many judges")
    asked = parser.parse_args(arguments)
    if asked.what == "show":
        _show()
    elif asked.what == "record":
        machine, os.environ["COMMIT"], date = _machine()
        sys.argv[1:] = ["slow"]  # the bench that makes these rows from nothing
        _record(Recorder(machine, date), answers(texts()))
    elif asked.what == "cuda" and not gpus():
        raise SystemExit("The evidence of a GPU needs a GPU, and there is none here.")
    else:
        gather(asked.what, texts(), Limit(900), asked.at_once)


if __name__ == "__main__":
    main(sys.argv[1:])
