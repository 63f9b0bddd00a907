"""The record of a learner's progress: the best result counts, nothing is lost, and no error stops a check."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from grader.exercises import CHAPTERS, EXERCISES, find
from grader.notebook import progress_record
from tests.feedback.verdicts import ALL


def test_the_best_counts(tmp_path: Path) -> None:
    """More points replace fewer, fewer never replace more, and a GPU's verdict replaces a simulator's equal one."""
    progress_record.keep(ALL["simulated"], tmp_path)
    progress_record.keep(ALL["mismatch"], tmp_path)
    assert progress_record.load(tmp_path)["softmax"].points == 4

    progress_record.keep(replace(ALL["slow"], points=4.0), tmp_path)
    assert progress_record.load(tmp_path)["softmax"].device == "cuda"

    progress_record.keep(ALL["passed"], tmp_path)
    progress_record.keep(ALL["simulated"], tmp_path)
    best = progress_record.load(tmp_path)["softmax"]
    assert (best.points, best.status, best.gpu, best.checks) == (10, "passed", "NVIDIA H200", 5)


def test_of_equal_results_the_latest_counts(tmp_path: Path) -> None:
    """The record names the submission that the learner has now."""
    progress_record.keep(ALL["simulated"], tmp_path)
    progress_record.keep(replace(ALL["simulated"], submission_sha256="1" * 64), tmp_path)

    assert progress_record.load(tmp_path)["softmax"].submission_sha256 == "1" * 64


def test_what_cannot_be_graded_is_not_recorded(tmp_path: Path) -> None:
    """A syntax error does not count as an attempt."""
    progress_record.keep(ALL["unusable"], tmp_path)

    assert progress_record.load(tmp_path) == {}


def test_what_needs_a_gpu_is_not_called_wrong(tmp_path: Path) -> None:
    """It replaces an earlier mistake but no points, and a later mistake replaces it."""
    exercise = find("mean_cuda")
    wrong = replace(ALL["not_judged"], status="failed", reachable_points=3.0)
    for verdict, words in ((wrong, "not right"), (ALL["not_judged"], "needs a GPU"), (wrong, "not right")):
        progress_record.keep(verdict, tmp_path)
        assert words in progress_record.left(exercise, progress_record.load(tmp_path)["mean_cuda"])
    right = replace(wrong, status="passed", points=3.0)
    for verdict in (right, ALL["not_judged"]):
        progress_record.keep(verdict, tmp_path)
        assert progress_record.load(tmp_path)["mean_cuda"].points == 3


_BAD_ENTRY = '{"exercises": {"softmax": {"points": "x"}}}'


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"exercises": 3}', _BAD_ENTRY, "\udcff"])
def test_a_damaged_record_is_set_aside(tmp_path: Path, content: str) -> None:
    """An unreadable record does not stop a check, and it is kept next to the new one."""
    folder = tmp_path / ".grader"
    folder.mkdir()
    (folder / "progress.json").write_bytes(content.encode("utf-8", "surrogateescape"))

    assert progress_record.load(tmp_path) == {}
    progress_record.keep(ALL["simulated"], tmp_path)

    assert progress_record.load(tmp_path)["softmax"].points == 4
    assert (folder / "progress.unreadable.json").read_bytes() == content.encode("utf-8", "surrogateescape")


def test_an_interrupted_write_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is replaced as a whole or not at all, and no temporary files remain."""
    progress_record.keep(ALL["simulated"], tmp_path)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress_record.os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        progress_record.keep(ALL["passed"], tmp_path)

    assert progress_record.load(tmp_path)["softmax"].points == 4
    assert {path.name for path in (tmp_path / ".grader").iterdir()} == {"progress.json", "lock"}


def test_two_notebooks_at_once(tmp_path: Path) -> None:
    """Checks that end at the same time are all recorded."""
    verdicts = [replace(ALL["simulated"], exercise=f"exercise_{number}") for number in range(12)]
    threads = [threading.Thread(target=progress_record.keep, args=(verdict, tmp_path)) for verdict in verdicts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(progress_record.load(tmp_path)) == 12


def test_a_folder_that_cannot_be_made_is_left_alone(tmp_path: Path) -> None:
    """A check still works if nothing can be written."""
    (tmp_path / ".grader").write_text("a file where the folder should be")

    progress_record.keep(ALL["simulated"], tmp_path)

    assert progress_record.load(tmp_path) == {}


def test_the_learners_folder(tmp_path: Path) -> None:
    """It is the folder with a record, or the chapter's parent, or the notebook's own folder, in this order."""
    chapter = tmp_path / "work" / "03_triton"
    chapter.mkdir(parents=True)
    other = tmp_path / "elsewhere"
    other.mkdir()

    assert progress_record.learner_folder(chapter) == tmp_path / "work"
    assert progress_record.learner_folder(other) == other
    (tmp_path / ".grader").mkdir()
    assert progress_record.learner_folder(chapter) == tmp_path


def test_the_overview_lists_every_exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exercise has its row, its points and what is left, and a link if its notebook exists."""
    monkeypatch.chdir(tmp_path)
    softmax = find("softmax")
    (tmp_path / softmax.chapter).mkdir()
    (tmp_path / softmax.chapter / f"{softmax.notebook}.ipynb").write_text("{}")
    progress_record.keep(ALL["slow"], tmp_path)
    known = progress_record.load(tmp_path)

    html, text = progress_record.as_html(known, tmp_path), progress_record.as_text(known)

    for exercise in EXERCISES.values():
        assert exercise.title in html
        assert exercise.title in text
        assert f"<code>{exercise.id}</code>" in html
    assert html.count("<a href=") == 1
    assert 'href="03_triton/03_fuse_a_softmax.ipynb"' in html
    assert f"7 of {sum(each.max_points for each in EXERCISES.values()):g} points" in html
    assert "3 points for speed" in text
    assert text.count("not checked yet") == len(EXERCISES) - 1


def test_what_is_left_in_words() -> None:
    """Done, not right, slow, and waiting for a GPU have different words."""
    softmax = find("softmax")

    assert progress_record.left(softmax, progress_record.Best.of(ALL["passed"])) == "done"
    assert progress_record.left(softmax, progress_record.Best.of(ALL["mismatch"])) == "not right yet"
    assert progress_record.left(softmax, progress_record.Best.of(ALL["slow"])) == "3 points for speed"
    assert progress_record.left(softmax, progress_record.Best.of(ALL["simulated"])) == "the rest needs a GPU: 6 points"


def test_the_record_is_plain_json(tmp_path: Path) -> None:
    """A person can read it."""
    progress_record.keep(ALL["simulated"], tmp_path)

    data = json.loads((tmp_path / ".grader" / "progress.json").read_text())
    assert data["version"] == 1
    assert data["exercises"]["softmax"]["submission_sha256"] == "0" * 64


def test_what_a_machine_without_a_gpu_can_give_is_ticked(tmp_path: Path) -> None:
    """All points for correctness on the simulator earn a tick; a slow kernel on a GPU does not, nor does a mistake."""
    for name, ticked in (("passed", True), ("simulated", True), ("slow", False), ("mismatch", False)):
        text = progress_record.as_text({"softmax": progress_record.Best.of(ALL[name])})
        (row,) = (line for line in text.splitlines() if line.split()[1:2] == ["softmax"])
        assert ("✓" in row) is ticked, row


def test_the_overview_says_where_to_continue(tmp_path: Path) -> None:
    """It names the first exercise of the course that the learner has not finished, and skips what needs a GPU."""
    first, second, third, *_ = EXERCISES.values()
    done = replace(progress_record.Best.of(ALL["passed"]), points=first.max_points)
    open_here = replace(progress_record.Best.of(ALL["not_judged"]), points=0.0)
    everything = {each.id: replace(done, points=each.max_points) for each in EXERCISES.values()}

    assert progress_record.following({}) == first
    assert progress_record.following({first.id: done, second.id: open_here}) == third
    assert progress_record.following(everything) is None
    assert f"Continue: {second.title}" in progress_record.as_text({first.id: done})
    assert "Continue: " in progress_record.as_html({first.id: done}, tmp_path)
    assert "Continue" not in progress_record.as_text(everything)


def test_each_chapter_has_a_subtotal() -> None:
    """The points of a chapter's exercises are added up under its title."""
    text = progress_record.as_text({"softmax": progress_record.Best.of(ALL["passed"])})

    for folder, title in CHAPTERS.items():
        most = sum(each.max_points for each in EXERCISES.values() if each.chapter == folder)
        have = 10 if folder == "03_triton" else 0
        assert f"\n{title}: {have} of {most:g} points\n" in text
