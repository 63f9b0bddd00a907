"""The flips benchmark: what it counts, and that an interrupted run can continue."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import flips
from benchmarks.limits import Limit
from benchmarks.rows import Recorder
from grader.errors import JudgeStopped
from grader.judge.gpu.ceilings import Machine
from grader.verdict import Environment, Finding, GateResult, Verdict
from tests.honest.corpus import Honest

TEXTS = [Honest(f"vector_add/{name}.py", f"# {name}\n", name, "vector_add", "anywhere", True, ()) for name in "abc"]
MACHINE = Machine("cuda", "NVIDIA None", "580", "2.11", "3.6", "3.12", 1 << 20, 4000.0)
TAG = {"gpu": "none", "commit": "abc"}


class Judged:
    """A judge that answers from a list (points and ratio, or an exception) and records its calls."""

    def __init__(self, answers: Iterator[Any]) -> None:
        self.answers, self.asked, self.expected = answers, [], []

    def __enter__(self) -> Judged:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def expect(self, submissions: list[tuple[str, str]]) -> None:
        self.expected.append([source for source, _ in submissions])

    def grade(self, source: str, exercise: str) -> Verdict:
        self.asked.append(source)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        points, ratio = answer
        gate = GateResult("torch", "torch.add", 0.95, "passed", points - 3, 2, ratio, ratio - 0.01, ratio + 0.01)
        finding = Finding("disturbed", "Another process was busy.")
        return Verdict(
            exercise, "", "passed", points, 5, 5, "", Environment("cuda"), gates=(gate,), findings=(finding,)
        )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs the benchmark's loop on the answers; returns the judge and the rows in the file."""

    def run(answers: list[Any], count: int = 2, seconds: float = 1000.0, texts: list[Honest] = TEXTS) -> Any:
        judge = Judged(iter(answers))
        monkeypatch.setattr(flips, "Judge", lambda device: judge)
        flips.grade_in_turn(texts, count, tmp_path / "flips.jsonl", Limit(seconds), TAG)
        path = tmp_path / "flips.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return judge, rows

    monkeypatch.delenv("BENCH_LIMIT_S", raising=False)
    return run


def test_a_slow_submission_is_not_graded_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A submission that was quick once is graded again; one that is left out is not announced either."""
    lines, slow, half, quick = tmp_path / "flips.jsonl", *TEXTS
    times = {slow.name: [20.0], half.name: [20.0, 2.0], quick.name: [2.0]}
    for text in TEXTS:
        for wall_s in times[text.name]:
            row = {"file": text.name, "sha256": flips._sha256(text), "wall_s": wall_s}
            with lines.open("a") as file:
                file.write(json.dumps(row) + "\n")
    judge = Judged(iter([(5, 1.0)] * 9))
    monkeypatch.setattr(flips, "Judge", lambda device: judge)
    flips.grade_in_turn(TEXTS, 3, lines, Limit(1000.0), TAG, longest_s=15.0)
    assert judge.asked == [text.source for text in (quick, half, quick)]
    assert slow.source not in itertools.chain(*judge.expected)


def test_files_are_graded_in_turn_and_the_judge_knows_what_comes_next(run: Any) -> None:
    """All files once, then all again; before each one, the judge learns that file and the next ones."""
    judge, rows = run([(5, 1.0)] * 6)
    assert judge.asked == ["# a\n", "# b\n", "# c\n"] * 2
    assert judge.expected[1] == ["# b\n", "# c\n", "# a\n", "# b\n", "# c\n"]
    assert [row["file"] for row in rows[:2]] == ["vector_add/a.py", "vector_add/b.py"]


def test_the_summary_counts_flips_and_failures(run: Any) -> None:
    """A flip is a grading that differs from its file's most common points; a judge that stops gives no points."""
    answers = [(5, 1.0), (3, 0.9), (5, 1.0), (5, 1.02), (3, 0.9), JudgeStopped("gone"), (3, 0.94), (3, 0.9), (5, 1.0)]
    _, rows = run(answers, count=3)
    found = flips.summary(rows, TEXTS)
    assert (found.files, found.gradings, found.flips) == (3, 9, 2)
    assert found.flipping == {"vector_add/a.py": [5, 5, 3], "vector_add/c.py": [5, 0, 5]}
    assert found.flip_rate == 2 / 9
    assert found.spreads["vector_add/b.py: torch"] == 0
    assert found.spreads["vector_add/a.py: torch"] == pytest.approx(0.0422, abs=1e-4)
    assert found.findings == {"disturbed": 8}
    assert found.failures == {"no verdict": 1}
    assert found.seconds == sum(row["wall_s"] for row in rows)


def test_an_interrupted_run_continues(run: Any) -> None:
    """Recorded texts are not graded again, unless they have changed; without time left nothing starts."""
    run([(5, 1.0)] * 4, count=1)
    judge, rows = run([], count=2, seconds=0.0)
    assert judge.asked == []
    assert len(rows) == 3
    changed = Honest("vector_add/b.py", "# b, changed\n", "b", "vector_add", "anywhere", True, ())
    judge, rows = run([(5, 1.0)] * 4, texts=[TEXTS[0], changed, TEXTS[2]])
    assert judge.asked == ["# b, changed\n", "# a\n", "# b, changed\n", "# c\n"]
    assert len(rows) == 7
    assert flips.summary(rows, [TEXTS[0], changed, TEXTS[2]]).gradings == 6


def test_time_is_reserved_for_slow_submissions(run: Any) -> None:
    """A new file may build for half a minute; a known one is expected to take as long as before."""
    run([(5, 1.0)], count=1, texts=TEXTS[:1])
    judge, _ = run([(5, 1.0)], count=2, seconds=20.0, texts=TEXTS[:2])
    assert judge.asked == []
    judge, _ = run([(5, 1.0)], count=2, seconds=20.0, texts=TEXTS[:1])
    assert judge.asked == ["# a\n"]


def test_a_judge_that_reaches_no_verdict_ends_the_run(run: Any) -> None:
    """Three in a row end the run; two followed by a verdict do not."""
    stopped = [JudgeStopped("gone")] * 2
    _, rows = run([*stopped, (5, 1.0), *stopped, (5, 1.0)])
    assert len(rows) == 6
    with pytest.raises(SystemExit, match=r"3 times in a row, last on vector_add/c\.py: gone"):
        run([*stopped, *stopped], count=3)


def test_shares_write_to_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No share grades another share's texts; each line names its commit, and the rows cover all lines."""
    monkeypatch.delenv("BENCH_LIMIT_S", raising=False)
    monkeypatch.setattr(flips, "RESULTS", tmp_path)
    monkeypatch.setattr(flips, "corpus", lambda: TEXTS)
    monkeypatch.setattr(Recorder, "write", lambda _: tmp_path)
    monkeypatch.setenv("GRADINGS", "2")
    asked = []
    for share, commit in (("1-of-2", "abc"), ("2-of-2", "def")):
        judge = Judged(iter([(5, 1.0)] * 4))
        monkeypatch.setattr(flips, "Judge", lambda device, judge=judge: judge)
        monkeypatch.setattr(flips, "commit", lambda commit=commit: commit)
        monkeypatch.setenv("FLIPS_SHARE", share)
        recorder = Recorder(MACHINE, "2026-11-23")
        flips.flips(recorder)
        asked.append(judge.asked)
    assert asked == [["# a\n", "# c\n"] * 2, ["# b\n"] * 2]
    lines = (tmp_path / "flips" / "nvidia-none.jsonl").read_text().splitlines()
    assert [json.loads(line)["commit"] for line in lines] == ["abc"] * 4 + ["def"] * 2
    rows = {row.metric: (row.case, row.value) for row in recorder.rows}
    assert rows["flip_rate"] == ("6 gradings of 3 files", 0)
    assert rows["commits"][1] == 2
