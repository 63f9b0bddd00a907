"""How often the same honest work gets other points: every file of `tests/honest`, graded again and again in turn.

The environment says how: `GRADINGS` of each file (20); `FLIPS_SECONDS` after which no further grading begins (540);
`FLIPS_OUT`, the file of JSON lines that grows by a line for each grading (else `$OUT/flips.jsonl`, else under
`build/bench`). A run may be split: what that file holds is not graded again, nor what the files in `FLIPS_RESUME` hold
(paths with `:` between them), whose lines are copied into it. So the last file has everything.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, Literal

from benchmarks.limits import Limit, folder, keep, kept
from benchmarks.rows import Recorder
from grader.errors import JudgeStopped
from grader.judge.service import Judge
from grader.verdict import Verdict
from tests.honest.corpus import Honest, corpus

__all__ = ["Summary", "flips", "grade_in_turn", "summary"]

_NO_VERDICT = "no verdict"
_GRADINGS = 20
_LIMIT_S = 540.0
_FIRST_S = 30.0  # is kept free for a file that has not been graded yet: it may build for as long
_AHEAD = 32  # gradings that the judge is told of; it looks at fewer
_MOST_WITHOUT = 3  # gradings without a verdict, one after another: then the judge is at fault, not the submissions


@dataclass(frozen=True)
class Summary:
    """What the rows amount to. `flips` are the gradings whose points are not their file's most common ones."""

    files: int
    gradings: int
    flips: int
    flipping: dict[str, list[float]]  # file -> its points, grading by grading
    spreads: dict[str, float]  # "file: baseline" -> standard deviation of the gate's ratio over its mean
    findings: Counter[str]  # by kind
    failures: Counter[str]  # by kind; "no verdict" where the judge stopped
    seconds: float  # of all gradings

    @property
    def flip_rate(self) -> float:
        return self.flips / self.gradings if self.gradings else 0.0


def flips(recorder: Recorder) -> None:
    """Rows `flips`: the share of gradings that flipped, the spread of the ratios, findings, failures, seconds."""
    count = int(os.environ.get("GRADINGS") or _GRADINGS)
    texts = []
    for honest in corpus():
        if honest.lacks:
            print(f"{honest.name} is left out: {honest.lacks} cannot be imported here", flush=True)
        else:
            texts.append(honest)
    lines = _lines()
    limit = Limit(float(os.environ.get("FLIPS_SECONDS") or _LIMIT_S))
    grade_in_turn(texts, count, lines, limit, tag={"gpu": recorder.machine.gpu})
    _record(recorder, summary([row for row in kept(lines) if row["gpu"] == recorder.machine.gpu], texts), count)


def grade_in_turn(
    texts: Sequence[Honest],
    count: int,
    lines: Path,
    limit: Limit,
    tag: dict[str, Any],
    device: Literal["cuda", "simulator"] = "cuda",
) -> None:
    """Grades each text until `lines` holds `count` gradings of it: all of them once, then all once more.

    Stops before a grading for which there is too little time left. Rows of another `tag` or text do not count.

    Raises:
        SystemExit: the judge reached no verdict three times in a row.
    """
    done: Counter[str] = Counter()
    longest: dict[str, float] = {}
    for row in kept(lines):
        if tag.items() <= row.items():
            done[row["sha256"]] += 1
            longest[row["file"]] = max(row["wall_s"], longest.get(row["file"], 0.0))
    queue = [text for turn in range(count) for text in texts if turn >= done[_sha256(text)]]
    without = 0
    with Judge(device) as judge:
        for at, text in enumerate(queue):
            if not limit.allows(1.2 * longest.get(text.name, _FIRST_S)):
                print(f"stopped in time: {len(queue) - at} gradings are left", flush=True)
                return
            judge.expect([(each.source, each.exercise) for each in queue[at : at + _AHEAD]])
            row = {"file": text.name, "sha256": _sha256(text), **tag, **_graded(judge, text)}
            longest[text.name] = max(row["wall_s"], longest.get(text.name, 0.0))
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
    """Of the rows that belong to these very texts."""
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
    )


def _record(recorder: Recorder, found: Summary, count: int) -> None:
    case = f"{found.gradings} gradings of {found.files} files"
    print(f"{case}; {count} of each were asked for")
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
    recorder.add("flips", case, "failures", "1", found.failures.total())
    if found.failures:
        print("failures:", dict(found.failures))
    recorder.add("flips", case, "seconds", "s", found.seconds)
    if found.gradings:
        recorder.add("flips", case, "seconds_each", "s", found.seconds / found.gradings)


def _lines() -> Path:
    """The file of this call, with the rows of `FLIPS_RESUME` that it lacks."""
    named, out = os.environ.get("FLIPS_OUT"), os.environ.get("OUT")
    path = Path(named) if named else (Path(out) if out else folder("flips")) / "flips.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = kept(path)
    for earlier in filter(None, os.environ.get("FLIPS_RESUME", "").split(":")):
        if not Path(earlier).is_file():
            raise SystemExit(f"FLIPS_RESUME names {earlier}, and there is no such file.")
        for row in kept(Path(earlier)):
            if row not in rows:
                rows.append(row)
                keep(path, row)
    return path


def _sha256(text: Honest) -> str:
    return hashlib.sha256(text.source.encode()).hexdigest()
