"""Tests of grader.classroom.grading.verdict_store: what counts as the same judgement, and what is never kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.classroom.grading import verdict_store
from grader.classroom.grading.verdict_store import Task, VerdictStore
from grader.hardware import Gpu
from grader.verdict import CaseResult, Environment, Failure, Finding, Verdict
from grader.version import __version__
from tests.classroom.grading.test_workers import verdict_on

TASK = Task("def softmax(x, out): ...", "softmax")
KIND = "simulator"


def test_a_verdict_is_found_again(tmp_path: Path) -> None:
    """Another process finds it; the sentence about the cell belongs to one notebook and is not kept."""
    verdict = verdict_on("a", cases=(CaseResult("one", True),), log="\ud800", judged="Judged: cell 3.")
    VerdictStore(tmp_path, sandbox=True).put(TASK, verdict)
    assert VerdictStore(tmp_path, sandbox=True).get(TASK, KIND) == replace(verdict, judged="")
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    "task",
    [replace(TASK, source="other"), replace(TASK, exercise_id="vector_add"), replace(TASK, timed=False),
     replace(TASK, kernels=True)],
)  # fmt: skip
def test_another_task_has_another_verdict(tmp_path: Path, task: Task) -> None:
    """Text, exercise, timing and inspection all count."""
    store = VerdictStore(tmp_path, sandbox=True)
    store.put(TASK, verdict_on("a"))
    assert store.get(task, KIND) is None


def test_machines_sandboxes_and_versions_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict counts only for the same GPU model, sandbox, exercise version and packages."""
    store = VerdictStore(tmp_path, sandbox=True)
    store.put(TASK, verdict_on("h200", environment=Environment("cuda", gpu="H200")))
    store.put(TASK, verdict_on("cpu"))
    found = {kind: store.get(TASK, kind) for kind in ("H200", "simulator", "H100")}
    assert {kind: each and each.submission_sha256 for kind, each in found.items()} == {
        "H200": "h200", "simulator": "cpu", "H100": None,
    }  # fmt: skip
    assert VerdictStore(tmp_path, sandbox=False).get(TASK, KIND) is None
    with monkeypatch.context() as patch:
        patch.setattr(verdict_store, "fingerprint", lambda exercise: "changed")
        assert VerdictStore(tmp_path, sandbox=True).get(TASK, KIND) is None
    monkeypatch.setattr(verdict_store, "versions", lambda: {"torch": "99"})
    assert store.get(TASK, KIND) is None


def test_times_of_the_practice_clock_are_kept_apart(tmp_path: Path) -> None:
    """They count only where they are accepted, and never instead of better ones."""
    store = VerdictStore(tmp_path, sandbox=True)
    store.put(TASK, verdict_on("practised", environment=Environment("cuda", gpu="H200", practice=True)))
    assert store.get(TASK, "H200") is None
    practised = store.get(TASK, "H200", practice_clock=True)
    assert practised is not None
    assert practised.submission_sha256 == "practised"
    store.put(TASK, verdict_on("timed", environment=Environment("cuda", gpu="H200")))
    for accepted in (False, True):
        timed = store.get(TASK, "H200", practice_clock=accepted)
        assert timed is not None
        assert timed.submission_sha256 == "timed"


def test_the_judges_code_is_part_of_the_graders_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `git pull` in the middle of a term, verdicts of the old code do not count."""
    monkeypatch.setattr(verdict_store, "_PACKAGE", tmp_path)
    (tmp_path / "judge").mkdir()
    found = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "judge" / "score.py").write_text(text, encoding="utf-8")
        found.append(verdict_store.versions.__wrapped__()["grader"])
    assert found[0] == found[2] != found[1]
    assert all(each.startswith(f"{__version__}+") for each in found)


def test_an_exercise_without_a_fingerprint_is_judged_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether it has changed."""

    def none(exercise: object) -> str:
        raise TypeError

    monkeypatch.setattr(verdict_store, "fingerprint", none)
    store = VerdictStore(tmp_path, sandbox=True)
    store.put(TASK, verdict_on("a"))
    assert store.get(TASK, KIND) is None


def test_a_verdict_is_not_kept_if_its_exercise_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody edits `gates.toml` during a run: nothing tells which gates the verdict is about."""
    (tmp_path / "nbgrader_config.py").touch()
    monkeypatch.setenv("GRADER_COURSE", str(tmp_path))
    store = VerdictStore(tmp_path, sandbox=True)
    assert store.get(TASK, "simulator") is None  # the run begins
    (tmp_path / "gates.toml").write_text(f"[{TASK.exercise_id}]\npoints = 1\n")
    store.put(TASK, verdict_on(TASK))
    (tmp_path / "gates.toml").unlink()
    assert VerdictStore(tmp_path, sandbox=True).get(TASK, "simulator") is None


def test_older_verdicts_do_not_count_for_a_forced_grading(tmp_path: Path) -> None:
    """`since` is compared with the time of writing. If the forced grading reaches no verdict, there is none."""
    store = VerdictStore(tmp_path, sandbox=True)
    before = verdict_store.now()
    store.put(TASK, verdict_on("a"))
    after = verdict_store.now()
    assert store.get(TASK, KIND, before) is not None
    assert store.get(TASK, KIND, after) is None
    assert store.get(TASK, KIND) is None


def test_the_kind_of_machine_is_that_of_the_chosen_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a host with two models, verdicts of the first one do not count for the second."""
    monkeypatch.setattr(verdict_store, "gpus", lambda: (Gpu("A100"), Gpu("H100")))
    assert [verdict_store.device_class("cuda", number) for number in (0, 1, 2)] == ["A100", "H100", "cuda"]
    assert (verdict_store.device_class("auto"), verdict_store.device_class("simulator")) == ("A100", "simulator")


TRANSIENT = {
    "timeout": verdict_on("a", failure=Failure("timeout", "It did not end.")),
    "limit": verdict_on("a", failure=Failure("limit", "Too much memory.")),
    "case": verdict_on("a", cases=(CaseResult("one", False, failure=Failure("crash", "It was killed.")),)),
    "no number": verdict_on("a", points=float("nan")),
    "disturbed": verdict_on("a", findings=(Finding("disturbed", "Another program used the GPU."),)),
}


@pytest.mark.parametrize("verdict", TRANSIENT.values(), ids=TRANSIENT)
def test_outcomes_of_a_busy_machine_are_not_kept(tmp_path: Path, verdict: Verdict) -> None:
    """The next grading judges again."""
    store = VerdictStore(tmp_path, sandbox=True)
    store.put(TASK, verdict)
    assert store.get(TASK, KIND) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"verdict": {}, "written_at": "2026"}', "\0" * 9])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, text: str) -> None:
    """A full disk or an editor must not stop a class; the next verdict replaces the file."""
    store = VerdictStore(tmp_path, sandbox=True)
    store.put(TASK, verdict_on("a"))
    (file,) = tmp_path.rglob("*.json")
    file.write_text(text, encoding="utf-8")
    assert store.get(TASK, KIND) is None
    store.put(TASK, verdict_on("b"))
    found = store.get(TASK, KIND)
    assert found is not None
    assert found.submission_sha256 == "b"
