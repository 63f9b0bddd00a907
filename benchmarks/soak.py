"""Hundreds of gradings of every kind by one judge, with a regular census: does anything leak or stay behind?"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.census import Census, grown, judge_pid, own_temp, settled
from benchmarks.limits import Fault, Limit, folder, keep
from benchmarks.material import MIXED, Deck, Text, crashing, honest, hostile, unique, wrong, wrong_while_timed
from benchmarks.rows import Recorder
from grader.errors import JudgeStopped
from grader.judge.service import Judge
from grader.verdict import Verdict
from grader.words import in_points

_GRADINGS = 500
_EVERY = 50
_TIMED = 0.25  # of all gradings: timing takes long, and leaks show without it
_SLOW_S = 15.0  # a text that took longer is not graded again
_LIMIT_S = 540.0
_UNITS = {
    "processes": "1", "descriptors": "1", "folders": "1", "shm": "1", "disk_kib": "KiB", "judge_host_mib": "MiB",
    "gpu_mib": "MiB", "judge_gpu_mib": "MiB",
}  # fmt: skip


def kind_of(verdict: Verdict) -> str:
    """Return one word for a verdict: how it failed, "passed", or "slow" if a gate took points."""
    failures = [verdict.failure, *(case.failure for case in verdict.cases)]
    for failure in failures:
        if failure is not None:
            return failure.kind
    if any(not case.passed for case in verdict.cases):
        return "wrong_answer"
    return "passed" if verdict.status == "passed" else "slow"


@dataclass
class Soak:
    """One soak. `faults` are sentences; there should be none."""

    device: Any
    gradings: int
    every: int
    seed: int
    limit: Limit
    lines: Path  # the file for the samples
    timed: float = _TIMED
    patience_s: float = 40.0  # time to wait for processes that end by themselves
    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    samples: list[tuple[int, Census, float]] = field(default_factory=list)  # gradings, census, gradings per minute
    done: int = 0
    judges: set[int] = field(default_factory=set)  # more than one if it was restarted
    _slow: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Grade until all is done or the limit is near."""
        chance = random.Random(self.seed)
        texts = [text for each in MIXED for text in (*honest(each, self.device), *wrong(each), *crashing(each))]
        deck = Deck([*texts, *hostile(self.device)], chance)
        with own_temp() as temp, Judge(self.device) as judge:
            first = [pick(each)[0] for each in MIXED for pick in (honest, wrong)]
            if self.device == "cuda":
                first += [wrong_while_timed(each) for each in MIXED]
            self._grade(judge, [(text, True) for text in first])
            self.done, before = 0, settled(temp)
            self.kinds.clear()
            self._sample(before, 0.0)
            while self.done < self.gradings and self.limit.allows(20):
                dealt = deck.deal(min(self.every, self.gradings - self.done) - 1)
                batch = [(text, chance.random() < self.timed) for text in dealt]
                # The last one needs the baselines, so that they run again if an earlier one ended them.
                batch.append((unique(honest("vector_add")[0], f"after {self.done}"), True))
                begun, count = time.monotonic(), self.done
                self._grade(judge, batch)
                for name in self._slow:
                    deck.drop(name)
                rate = (self.done - count) / (time.monotonic() - begun) * 60
                now = settled(temp, before, self.patience_s)
                self._sample(now, rate)
                if len(self.samples) == 2 and before.gpu_mib and now.gpu_mib:
                    # torch keeps GPU memory. By now it has seen all sizes, so it must not grow further.
                    before = replace(before, gpu_mib=max(before.gpu_mib, now.gpu_mib))
                self.faults += [f"after {self.done} gradings: {sentence}" for sentence in grown(before, now)]
            judge.close()
            left = settled(temp, limit_s=self.patience_s)
            if left.processes:
                self.faults.append(f"processes left after the judge was closed: {left.processes}")
            if left.folders or left.disk_kib > 64:
                self.faults.append(f"temp folders left after the judge was closed: {left.folders}, {left.disk_kib} KiB")

    def _grade(self, judge: Judge, batch: Sequence[tuple[Text, bool]]) -> None:
        judge.expect([(text.source, text.exercise) for text, _ in batch])
        for text, timed in batch:
            if not self.limit.allows(10):
                return
            begun = time.monotonic()
            try:
                verdict = judge.grade(text.source, text.exercise, timed=timed)
            except JudgeStopped as error:
                self.faults.append(f"the judge stopped on {text.exercise}, {text.name}: {error}")
                continue
            finally:
                self.done += 1
            seconds, kind = time.monotonic() - begun, kind_of(verdict)
            self.kinds[kind] += 1
            if seconds > _SLOW_S:
                self._slow.add(text.name)
            right = sum(case.passed for case in verdict.cases)
            if text.kind == "honest" and kind not in ("passed", "slow"):
                self.faults.append(f"{text.exercise}, {text.name} is honest, but got {kind}: {verdict.failure}")
            if text.kind == "wrong" and verdict.points:
                self.faults.append(f"{text.exercise}, {text.name} is wrong, but got {in_points(verdict.points)}")
            keep(self.lines, {"text": text.name, "exercise": text.exercise, "meant": text.kind, "kind": kind,
                              "points": verdict.points, "right": right, "seconds": round(seconds, 2)})  # fmt: skip

    def _sample(self, found: Census, rate: float) -> None:
        self.judges.add(judge_pid())
        self.samples.append((self.done, found, rate))
        keep(self.lines, {"gradings": self.done, "per_minute": round(rate, 1), **found.to_dict(),
                          "kinds": dict(self.kinds), "faults": self.faults})  # fmt: skip
        print(f"{self.done:4} gradings, {rate:5.1f} per minute: {found}", flush=True)


def soak(recorder: Recorder) -> None:
    """Rows `soak`: a census before, after and every 50 gradings, and the verdicts by kind. `SOAK` sets the number.

    Raises:
        Fault: something leaked, the judge stopped, or a verdict was not the expected one.
    """
    count = int(os.environ.get("SOAK") or _GRADINGS)
    run = Soak("cuda", count, _EVERY, random.SystemRandom().getrandbits(32), Limit(_LIMIT_S),
               folder("soak") / "mix.jsonl")  # fmt: skip
    keep(run.lines, {"begun": recorder.date, "gradings": count, "seed": run.seed})
    try:
        run.run()
    finally:
        for done, found, rate in run.samples:
            values = {name: value for name, value in found.to_dict().items() if value is not None}
            for metric, value in values.items():
                recorder.add("soak", f"after {done} gradings", metric, _UNITS[metric], value)
            if done:
                recorder.add("soak", f"after {done} gradings", "per_minute", "1/min", rate)
        for kind, number in sorted(run.kinds.items()):
            recorder.add("soak", f"{run.done} gradings, {kind}", "verdicts", "1", number)
        recorder.add("soak", f"{run.done} of {count} gradings", "judges", "1", len(run.judges))
        recorder.add("soak", f"{run.done} of {count} gradings", "faults", "1", len(run.faults))
    if run.faults:
        raise Fault("\n".join(["soak:", *run.faults]))
