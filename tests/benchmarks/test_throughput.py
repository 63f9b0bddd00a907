"""Both courses of the throughput bench grade: stock nbgrader's and this project's."""

import json
from types import SimpleNamespace

import pytest

from benchmarks.census import descendants
from benchmarks.limits import Fault, Limit, kept
from benchmarks.material import Text

pytest.importorskip("nbgrader")

from benchmarks import throughput
from benchmarks.classes import make_class, surroundings
from benchmarks.throughput import grade_ours, grade_stock

RIGHT = "def vector_add(x, y, out):\n    out.copy_(x + y)\n"
WRONG = "def vector_add(x, y, out):\n    out.copy_(x - y)\n"
OWN = {name: {"vector_add": Text(name, "vector_add", "honest", source)} for name, source in
       (("ann", RIGHT), ("ben", WRONG))}  # fmt: skip


def test_the_stock_course_is_graded_by_nbgrader_itself(tmp_path):
    """Its check cell gives full points to a right notebook and none to a wrong one. A second call grades nothing."""
    lines = tmp_path / "stock.jsonl"
    with surroundings(tmp_path):
        made = make_class(tmp_path / "course", OWN, "cpu", stock=True, bare=True)
        assert made.notebooks == 2
        grade_stock(made, lines, Limit(100))
        rows = kept(lines)
        assert [(row["student"], row["score"]) for row in rows] == [("ann", 5.0), ("ben", 0.0)]
        assert all(row["seconds"] > 0 for row in rows)
        grade_stock(made, lines, Limit(100))
    assert kept(lines) == rows


def test_nobody_is_graded_beyond_the_limit(tmp_path):
    """The rest is left for the next call."""
    with surroundings(tmp_path):
        made = make_class(tmp_path / "course", OWN, "cpu", stock=True, bare=True)
        grade_stock(made, tmp_path / "lines", Limit(1))
    assert kept(tmp_path / "lines") == []


@pytest.mark.parametrize("bare", [True, False])
def test_our_course_is_graded_by_the_judge(tmp_path, bare):
    """The texts are the same. The assignment has one line, with the points that need no GPU."""
    before = set(descendants())
    with surroundings(tmp_path):
        made = make_class(tmp_path / "course", OWN, "cpu", stock=False, bare=bare)
        grade_ours(made, tmp_path / "ours.jsonl", Limit(100))
    (row,) = kept(tmp_path / "ours.jsonl")
    assert (row["assignment"], row["notebooks"], row["score"]) == ("03_triton", 2, 3.0)
    begun = [command for pid, command in descendants().items() if pid not in before]
    forked = "tests.forked"  # other tests' judges in this process begin their next workers when they like
    assert not [command for command in begun if forked not in command], "its judge has not ended"


def test_the_courses_own_notebooks_are_handed_in(tmp_path):
    """The student's own text is in its cell. All else is as released, so that `grayscale` is not solved."""
    own = {"ann": {"square_matrix": Text("ann", "square_matrix", "honest", "own = 1\n")}}
    with surroundings(tmp_path):
        made = make_class(tmp_path / "course", own, "cpu", stock=True)
    assert made.handed_in == [("02_load_inline", "ann", 1)]
    (path,) = (made.folder / "submitted" / "ann").rglob("*.ipynb")
    released = made.folder / "release" / "02_load_inline" / path.name
    cells, before = (json.loads(each.read_text())["cells"] for each in (path, released))
    changed = {cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
               for cell, old in zip(cells, before, strict=True) if cell != old}  # fmt: skip
    assert changed == {"square_matrix": "own = 1\n"}
    stubs = ["".join(cell["source"]) for cell in cells if "YOUR CODE HERE" in "".join(cell["source"])]
    assert len(stubs) == 1
    assert "grayscale" in stubs[0]
    assert any("check(square_matrix)" in "".join(cell["source"]) for cell in cells)


def test_one_gpu_is_compared_with_two(tmp_path, monkeypatch):
    """The rates leave out the first student, and one notebook per further judge. Two GPUs must save enough.

    A second call takes the rates of the first.
    """
    rows, seconds = [], iter([54.0, 26.0])
    recorder = SimpleNamespace(add=lambda bench, case, metric, unit, value: rows.append((case, metric, value)))
    monkeypatch.setenv("BENCH_STATE", str(tmp_path))
    monkeypatch.setenv("BENCH_NOTEBOOKS", "30")
    monkeypatch.setattr(throughput, "found_gpus", lambda: ("one", "two"))
    monkeypatch.setattr(throughput, "texts", lambda _, students, exercises: dict.fromkeys(range(students), OWN["ann"]))
    monkeypatch.setattr(throughput, "make_class", lambda *_, **__: None)
    monkeypatch.setattr(throughput, "grade_stock", lambda made, lines, limit: None)
    monkeypatch.setattr(throughput, "_grade_on", lambda made, indices: (next(seconds), 90.0))
    throughput.gpus(recorder)
    throughput.gpus(recorder)
    assert [value for case, metric, value in rows if metric == "per_minute"] == [30.0, 60.0, 30.0, 60.0]
    seconds = iter([54.0, 40.0])
    monkeypatch.setenv("BENCH_STATE", str(tmp_path / "another"))
    with pytest.raises(Fault, match=r"1\.30 times as fast"):
        throughput.gpus(recorder)
