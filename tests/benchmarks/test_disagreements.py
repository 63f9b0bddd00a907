"""The table of disagreements: which files it grades, what it writes, and what it says."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import disagreements
from benchmarks.disagreements import Text, grade_all, main, table, texts
from benchmarks.limits import Limit, keep, kept
from grader.errors import JudgeStopped
from grader.verdict import Environment, Failure, Verdict
from tests.honest import corpus as honest
from tests.mistakes import corpus as mistakes

FILES = [Text(f"mistakes/softmax/{name}.py", "softmax", f"# {name}\n", "wrong", ("a race",) * 2) for name in "abc"]


class Judged:
    """A judge that fails every submission but `# b`, which it passes, and stops on `# c`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.interrupted = threading.Event()

    def grade(self, source: str, exercise: str, *, timed: bool) -> Verdict:
        assert not timed
        self.asked.append(source)
        if source == "# c\n":
            raise JudgeStopped("gone")
        if source == "# waits\n":
            self.interrupted.wait()
            raise JudgeStopped("interrupted")
        passed = source == "# b\n"
        failure = None if passed else Failure("fails_on_gpu", "There is a race.")
        return Verdict(
            exercise, "", "passed" if passed else "failed", 0, 5, 5, "", Environment("cuda", "A GPU"), failure=failure
        )

    def interrupt(self) -> None:
        self.interrupted.set()

    def close(self) -> None:
        pass


def test_every_file_of_both_corpora_is_graded() -> None:
    """Once each; the exercises that measure times come last, when few others are left."""
    names = [each.name for each in texts()]
    assert len(names) == len(set(names))
    assert {f"mistakes/{each.name}.py" for each in mistakes.corpus()} <= set(names)
    assert {f"honest/{each.name}" for each in honest.corpus() if not each.needs} <= set(names)
    exercises = [each.exercise for each in texts()]
    assert exercises.index("time_gpu") > exercises.index("softmax")
    assert {each.exercise for each in texts(["vector_add/", "widen/"])} == {"vector_add", "widen"}


def test_reasons_are_about_files_that_exist() -> None:
    """A file that was renamed or is gone needs no reason."""
    assert set(disagreements.REASONS) <= {each.name.removesuffix(".py") for each in texts()}


def test_verdicts_are_written_as_they_come(tmp_path: Path) -> None:
    """One line per file, with the first sentence and whether the bug was named; also if there was no verdict."""
    lines = tmp_path / "some" / "cuda.jsonl"
    grade_all(FILES, "cuda", 2, lines, Limit(60), Judged)  # type: ignore[arg-type]
    rows = {row["file"][-4]: row for row in kept(lines)}
    assert [rows[name]["verdict"] for name in "abc"] == ["wrong", "right", "no verdict"]
    assert (rows["a"]["said"], rows["a"]["named"], rows["a"]["gpu"]) == ("There is a race.", True, "A GPU")
    assert (rows["b"]["said"], rows["b"]["named"]) == ("", False)


def test_at_the_limit_a_grading_is_ended_and_not_written(tmp_path: Path) -> None:
    """A file that is interrupted is graded in the next run."""
    lines = tmp_path / "cuda.jsonl"
    waits = Text("mistakes/softmax/waits.py", "softmax", "# waits\n", "wrong")
    grade_all([FILES[0], waits, FILES[1]], "cuda", 1, lines, Limit(2), Judged)  # type: ignore[arg-type]
    assert [row["file"] for row in kept(lines)] == [FILES[0].name]


def test_a_later_run_grades_what_is_new_or_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a verdict is graded again; the exit status says whether one is left."""
    changed = Text(FILES[1].name, "softmax", "# d\n", "wrong")
    asked: list[Judged] = []

    def judge(*_: Any, **__: Any) -> Judged:
        asked.append(Judged())
        return asked[-1]

    monkeypatch.setattr(disagreements, "FOLDER", tmp_path)
    monkeypatch.setattr(disagreements, "Judge", judge)
    monkeypatch.setattr(disagreements, "texts", lambda only=(): FILES)
    command = ["simulator", "--at-once", "1", "--unforked"]
    assert main(command) == 1
    monkeypatch.setattr(disagreements, "texts", lambda only=(): [FILES[0], changed, FILES[2]])
    assert main(command) == 1
    assert [each.asked for each in asked] == [["# a\n", "# b\n", "# c\n"], ["# d\n", "# c\n"]]


def test_a_file_that_ran_out_of_memory_beside_others_is_graded_again_alone(tmp_path: Path) -> None:
    """Unless the report names the bug. Only the second verdict is written."""

    class Crowded(Judged):
        judges = 0

        def __init__(self) -> None:
            super().__init__()
            Crowded.judges += 1
            self.alone = Crowded.judges == 3

        def grade(self, source: str, exercise: str, *, timed: bool) -> Verdict:
            verdict = super().grade("# a\n", exercise, timed=timed)
            left = "the right words" if self.alone or source == "# b\n" else "too much"
            return replace(verdict, failure=Failure("limit", f"It holds memory: {left}."))

    named = [replace(each, says=("", "the right words")) for each in FILES]
    lines = tmp_path / "cuda.jsonl"
    grade_all(named, "cuda", 2, lines, Limit(60), Crowded)  # type: ignore[arg-type]
    rows = kept(lines)
    assert [row["file"][-4] for row in rows][:1] == ["b"]
    assert {row["said"] for row in rows} == {"It holds memory: the right words."}
    assert (len(rows), Crowded.judges) == (3, 3)


def test_another_gpu_grades_what_no_gpu_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each GPU's verdicts are in a file of their own. `--anew` grades all files."""
    asked: list[str] = []

    class Asked(Judged):
        def grade(self, source: str, exercise: str, *, timed: bool) -> Verdict:
            asked.append(source)
            return super().grade(source, exercise, timed=timed)

    first = {"file": FILES[0].name, "sha256": FILES[0].sha256, "verdict": "wrong", "gpu": "GPU one", "named": True}
    keep(tmp_path / "gpu-one.jsonl", first)
    monkeypatch.setattr(disagreements, "FOLDER", tmp_path)
    monkeypatch.setattr(disagreements, "gpus", lambda: [SimpleNamespace(name="GPU two")])
    monkeypatch.setattr(disagreements, "Judge", lambda *_, **__: Asked())
    monkeypatch.setattr(disagreements, "texts", lambda only=(): FILES[:2])
    main(["cuda", "--at-once", "1"])
    assert asked == ["# b\n"]
    main(["cuda", "--at-once", "1", "--anew"])
    assert asked == ["# b\n", "# a\n", "# b\n"]
    assert {row["file"][-4] for row in kept(tmp_path / "gpu-two.jsonl")} == {"a", "b"}


def test_the_table_has_the_files_whose_verdicts_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """With both sentences, the GPU and the reason; a file that one side did not grade is not counted."""

    def row(verdict: str, said: str = "", named: bool = True) -> dict[str, object]:
        return {"verdict": verdict, "said": said, "named": named}

    a, b, c = (each.name for each in FILES)
    monkeypatch.setitem(disagreements.REASONS, "mistakes/softmax/a", "The interpreter has no streams.")
    on_gpus = {
        "H100": {a: row("wrong", "It | races."), c: row("no verdict")},
        "H200": {a: row("right"), b: row("wrong", "It is 0.", named=False)},
    }
    page = table({a: row("right"), b: row("wrong"), c: row("right")}, on_gpus, FILES)
    assert "2 of 3 files" in page
    assert "(1 on an H100, 2 on an H200)" in page
    assert "agree (1 wrong)" in page
    rows = [line for line in page.splitlines() if line.startswith("| mistakes")]
    assert rows == [
        "| mistakes/softmax/a | wrong | right | wrong: It / races. | H100 | The interpreter has no streams. |"
    ]
    assert "- `mistakes/softmax/b` on an H200: It is 0." in page
