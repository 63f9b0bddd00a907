"""How often the same honest work gets different points: every file of `tests/honest` is graded repeatedly, in turn.

Each grading adds a line to `benchmarks/results/flips/<gpu>.jsonl`, with its commit. A later run continues there; to
start again, delete the file. These environment variables set how much is graded:

- `GRADINGS`: how often each file is graded, 20 by default.
- `FLIPS_SHARE`: a part of the files, such as `1-of-2`.
- `FLIPS_LONGEST_S`: a file that never took less than this is not graded again. Most of its time is a build.
- `BENCH_LIMIT_S`: when to stop.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, Literal

from benchmarks.limits import Limit, keep, kept
from benchmarks.rows import Recorder, commit
from grader.errors import JudgeStopped
from grader.judge.service import Judge
from grader.results import RESULTS
from grader.verdict import Verdict
from tests.honest.corpus import Honest, corpus

_NO_VERDICT = "no verdict"
_GRADINGS = 20
_LIMIT_S = 540.0
_FIRST_S = 30.0  # reserved for a file that has not been graded yet: it may have to build
_AHEAD = 32  # announced gradings; the judge uses fewer
_MOST_WITHOUT = 3  # gradings in a row without a verdict: then the judge is at fault, not the submissions


@dataclass(frozen=True)
class Summary:
    """A summary of the rows. A flip is a grading whose points are not the most common ones of its file."""

    files: int
    gradings: int
    flips: int
    flipping: dict[str, list[float]]  # file -> its points, grading by grading
    spreads: dict[str, float]  # "file: baseline" -> standard deviation of the gate's ratio over its mean
    findings: Counter[str]  # by kind
    failures: Counter[str]  # by kind; "no verdict" if the judge stopped
    seconds: float  # of all gradings
    commits: int  # number of versions that graded

    @property
    def flip_rate(self) -> float:
        return self.flips / self.gradings if self.gradings else 0.0


def flips(recorder: Recorder) -> None:
    """Rows `flips`, from all lines so far: share of flips, spread of ratios, findings, failures, seconds, commits."""
    count, texts = int(os.environ.get("GRADINGS") or _GRADINGS), []
    for honest in corpus():
        if honest.lacks:
            print(f"{honest.name} is left out, because {honest.lacks} cannot be imported here", flush=True)
        else:
            texts.append(honest)
    lines = RESULTS / "flips" / f"{recorder.path().stem}.jsonl"
    lines.parent.mkdir(parents=True, exist_ok=True)
    share, shares = map(int, os.environ.get("FLIPS_SHARE", "1-of-1").split("-of-"))
    grade_in_turn(texts[share - 1 :: shares], count, lines, Limit(_LIMIT_S),
                  {"gpu": recorder.machine.gpu, "commit": commit(), "date": recorder.date},
                  longest_s=float(os.environ.get("FLIPS_LONGEST_S") or math.inf))  # fmt: skip
    _record(recorder, summary(kept(lines), texts), count)


def grade_in_turn(
    texts: Sequence[Honest],
    count: int,
    lines: Path,
    limit: Limit,
    tag: dict[str, str],
    device: Literal["cuda", "simulator"] = "cuda",
    longest_s: float = math.inf,
) -> None:
    """Grade each text until `lines` holds `count` gradings of it: all of them once, then all once more.

    Skip a text that never took less than `longest_s`. Stop when too little time is left for the next grading. Rows of
    another version of a text do not count.

    Raises:
        SystemExit: the judge reached no verdict three times in a row.
    """
    done: Counter[str] = Counter()
    longest: dict[str, float] = {}
    shortest: dict[str, float] = {}  # by text; the first grading of an exercise waits for its baselines

    def note(row: Mapping[str, Any]) -> None:
        longest[row["file"]] = max(row["wall_s"], longest.get(row["file"], 0.0))
        shortest[row["sha256"]] = min(row["wall_s"], shortest.get(row["sha256"], math.inf))

    def wanted(text: Honest) -> bool:
        return shortest.get(_sha256(text), 0.0) <= longest_s

    for row in kept(lines):
        done[row["sha256"]] += 1
        note(row)
    queue = [text for turn in range(count) for text in texts if turn >= done[_sha256(text)]]
    without = 0
    with Judge(device) as judge:
        for at, text in enumerate(queue):
            if not wanted(text):
                continue
            if not limit.allows(1.2 * longest.get(text.name, _FIRST_S)):
                print(f"stopped at the time limit; gradings left: {sum(map(wanted, queue[at:]))}", flush=True)
                return
            judge.expect([(each.source, each.exercise) for each in queue[at : at + _AHEAD] if wanted(each)])
            row = {"file": text.name, "sha256": _sha256(text), **tag, **_graded(judge, text)}
            note(row)
            keep(lines, row)
            print(f"{at + 1:5} of {len(queue)}  {text.name:42} {row['points']:4g} {row['ratios']}", flush=True)
            without = without + 1 if row["failure"] == _NO_VERDICT else 0
            if without == _MOST_WITHOUT:
                raise SystemExit(f"There was no verdict {without} times in a row, last on {text.name}: {row['said']}")


def _graded(judge: Judge, text: Honest) -> dict[str, Any]:
    begun = time.perf_counter()
    try:
        found = _facts(judge.grade(text.source, text.exercise))
    except JudgeStopped as error:
        found = {"points": 0.0, "ratios": {}, "findings": [], "failure": _NO_VERDICT, "said": str(error)}
    return found | {"wall_s": round(time.perf_counter() - begun, 3)}


def _facts(verdict: Verdict) -> dict[str, Any]:
    failures = [verdict.failure, *(case.failure for case in verdict.cases)]
    wrong = [case.name for case in verdict.cases if not case.passed]
    failure = next((each for each in failures if each is not None), None)
    return {
        "points": verdict.points,
        "ratios": {gate.baseline: gate.ratio for gate in verdict.gates if gate.ratio is not None},
        "outcomes": {gate.baseline: gate.outcome for gate in verdict.gates},
        "findings": [{"kind": finding.kind, "sentence": finding.sentence} for finding in verdict.findings],
        "failure": failure.kind if failure else "wrong_answer" if wrong else "",
        "said": failure.message if failure else ", ".join(wrong),
        "clock": verdict.clock,
        "trials": max((timing.trials for timing in verdict.timings), default=0),
        "sm_clock_mhz": verdict.environment.sm_clock_mhz,
        "temperature_c": verdict.environment.temperature_c,
        "seconds": verdict.seconds,
    }


def summary(rows: Sequence[dict[str, Any]], texts: Sequence[Honest]) -> Summary:
    """Return the summary of the rows that belong to exactly these texts."""
    known = {_sha256(text) for text in texts}
    rows = [row for row in rows if row["sha256"] in known]
    points: dict[str, list[float]] = defaultdict(list)
    ratios: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        points[row["file"]].append(row["points"])
        for baseline, ratio in row["ratios"].items():
            ratios[f"{row['file']}: {baseline}"].append(ratio)
    others = {name: len(values) - max(Counter(values).values()) for name, values in points.items()}
    return Summary(
        files=len(points),
        gradings=len(rows),
        flips=sum(others.values()),
        flipping={name: points[name] for name, number in others.items() if number},
        spreads={name: stdev(values) / mean(values) for name, values in ratios.items() if len(values) > 1},
        findings=Counter(finding["kind"] for row in rows for finding in row["findings"]),
        failures=Counter(row["failure"] for row in rows if row["failure"]),
        seconds=sum(row["wall_s"] for row in rows),
        commits=len({row["commit"] for row in rows}),
    )


def _record(recorder: Recorder, found: Summary, count: int) -> None:
    case = f"{found.gradings} gradings of {found.files} files"
    print(f"{case}; wanted of each: {count}")
    for name, values in found.flipping.items():
        print(f"flipped: {name}: {values}")
    recorder.add("flips", case, "flip_rate", "1", found.flip_rate)
    recorder.add("flips", case, "files_that_flipped", "1", len(found.flipping))
    if found.spreads:
        widest = sorted(found.spreads.items(), key=lambda item: item[1])[-5:]
        print("widest:", ", ".join(f"{name} {spread:.2%}" for name, spread in reversed(widest)))
        spreads = list(found.spreads.values())
        recorder.add("flips", case, "ratio_spread", "1", median(spreads), min(spreads), max(spreads))
    for kind in ("rule", "clock", "disturbed"):
        recorder.add("flips", case, f"findings_{kind}", "1", found.findings[kind])
    recorder.add("flips", case, "commits", "1", found.commits)
    recorder.add("flips", case, "failures", "1", found.failures.total())
    if found.failures:
        print("failures:", dict(found.failures))
    recorder.add("flips", case, "seconds", "s", found.seconds)
    if found.gradings:
        recorder.add("flips", case, "seconds_each", "s", found.seconds / found.gradings)


def _sha256(text: Honest) -> str:
    return hashlib.sha256(text.source.encode()).hexdigest()
