"""The build makes the right notebooks, and each check fails on its fault."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from grader.authoring.build import build, report_text
from grader.errors import MachineLacks

from .conftest import SOFTMAX_BUILT, SOFTMAX_PATH, SQUARE_BUILT, SQUARE_PATH, Checkout

LEAK = "denominator = tl.sum(numerator, axis=0)"


def test_a_notebook_is_ready_for_a_learner(tree: Checkout) -> None:
    """It is valid, titled, has no outputs, no solution, no trace of jupytext, and its check cells are locked."""
    assert tree.build().ok
    notebook = nbformat.read(tree.root / SOFTMAX_BUILT, as_version=4)
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)
    assert notebook.metadata.title == "Fuse a softmax"
    assert notebook.metadata.kernelspec.name == "python3"
    assert "jupytext" not in notebook.metadata
    assert [cell.id for cell in notebook.cells] == ["cell-001", "cell-002", "softmax", "check-softmax"]
    solution, check = notebook.cells[2], notebook.cells[3]
    assert "    pass  # YOUR CODE HERE\n" in solution.source
    assert '    raise NotImplementedError("not written yet")' in solution.source
    assert "tl.program_id" not in solution.source
    assert check.source == "check(softmax)"
    assert check.metadata.editable is check.metadata.deletable is False
    assert check.metadata.nbgrader.points == 10
    assert check.metadata.nbgrader.checksum
    assert notebook.cells[1].metadata == {"tags": ["hide-input"]}
    assert all(cell.get("outputs", []) == [] for cell in notebook.cells)


def test_a_cuda_string_gets_a_stub_in_cpp(tree: Checkout) -> None:
    """A region in a CUDA C++ string leaves a C++ comment, in the same notebook in which Python gets a `raise`."""
    tree.build()
    source = nbformat.read(tree.root / SQUARE_BUILT, as_version=4).cells[1].source
    assert "int width) {\n    // YOUR CODE HERE\n}" in source
    assert source.endswith('def square_matrix(x, out):\n    raise NotImplementedError("not written yet")')


def test_a_rebuild_is_the_same_byte_for_byte(tree: Checkout) -> None:
    """A second build, and one from nothing, make the same bytes; the second writes none."""
    first = tree.build()
    before = {path: path.read_bytes() for path in (tree.root / "course").rglob("*") if path.is_file()}
    again = tree.build()
    assert again.written == ()
    assert again.unchanged == first.written
    for path in before:
        path.unlink()
    tree.build()
    assert {path: path.read_bytes() for path in before} == before


def test_check_writes_nothing(tree: Checkout) -> None:
    """`check` on an empty course names every file and makes none."""
    report = tree.build(check=True)
    assert len(report.stale) == 3
    assert not (tree.root / "course").exists()


@pytest.mark.parametrize("name", [SOFTMAX_BUILT, "course/figures/bars.svg"])
def test_an_edited_file_is_stale(tree: Checkout, name: str) -> None:
    """A file of the course that was edited by hand fails the check, and a build fixes it."""
    tree.build()
    tree.write(name, (tree.root / name).read_text(encoding="utf-8") + "\n")
    assert [sentence.split()[0] for sentence in tree.build(check=True).stale] == [name]
    assert tree.build().ok
    assert tree.build(check=True).ok


def test_an_edited_source_makes_the_course_stale(tree: Checkout) -> None:
    """A source that changed since the build fails the check."""
    tree.build()
    tree.replace(SOFTMAX_PATH, "import torch", "import torch.nn")
    assert len(tree.build(check=True).stale) == 1


def test_a_file_without_a_source_is_reported_and_kept(tree: Checkout) -> None:
    """A file without a source fails both ways of building and is never deleted; Jupyter's own folders do not count."""
    tree.build()
    tree.write("course/03_triton/.ipynb_checkpoints/x.ipynb", "{}")
    assert tree.build(check=True).ok
    tree.write("course/03_triton/notes.txt", "mine")
    for check in (True, False):
        assert "course/03_triton/notes.txt has no source" in tree.build(check).stale[0]
    assert (tree.root / "course/03_triton/notes.txt").exists()


def test_a_solution_line_in_the_prose_of_another_notebook_leaks(tree: Checkout) -> None:
    """A line of a solution in another notebook's prose fails the check, and that notebook is not written."""
    tree.replace(SQUARE_PATH, "# # Square a matrix", f"# # Square a matrix\n#\n# Think of `{LEAK}`.")
    assert len(tree.build(check=True).leaks) == 1
    report = tree.build()
    assert SQUARE_BUILT.removeprefix("course/") in report.leaks[0]
    assert "'softmax'" in report.leaks[0]
    assert not (tree.root / SQUARE_BUILT).exists()


def test_white_space_hides_no_leak(tree: Checkout) -> None:
    """A line of a solution is found with another indent, other spaces and over two lines."""
    tree.replace(
        SQUARE_PATH, "# # Square a matrix", "# # Square\n#\n#     denominator  =  tl.sum(\n#         numerator,axis=0)"
    )
    assert len(tree.build().leaks) == 1


@pytest.mark.parametrize("where", ["source", "outputs"])
def test_a_solution_line_written_into_the_course_leaks(tree: Checkout, where: str) -> None:
    """A line that is only in the course's files is found too, in a cell's text or in its outputs."""
    tree.build()
    path = tree.root / SQUARE_BUILT
    data = json.loads(path.read_text(encoding="utf-8"))
    stream = {"output_type": "stream", "name": "stdout", "text": [LEAK]}
    data["cells"][1][where] = [LEAK] if where == "source" else [stream]
    path.write_text(json.dumps(data), encoding="utf-8")
    report = tree.build(check=True)
    assert len(report.leaks) == 1
    assert report.stale
    assert not report.ok


def test_a_solution_line_in_any_text_file_leaks(tree: Checkout) -> None:
    """Figures and data are scanned as well; bytes that are not text do no harm."""
    tree.write("source/data/hint.txt", f"a\n{LEAK}\n")
    (tree.root / "source/data/picture.png").write_bytes(b"\x89PNG\xff\xfe")
    assert [sentence.split(":")[0] for sentence in tree.build(check=True).leaks] == ["course/data/hint.txt"]


def test_a_line_that_code_shows_is_no_leak(tree: Checkout) -> None:
    """A line that an author shows in a code cell may be quoted, and trivial lines may be anywhere."""
    tree.replace(
        SQUARE_PATH, "# # Square a matrix\n", f"# # Square a matrix\n#\n# `{LEAK}`, `import triton` and `return out`\n"
    )
    tree.replace(SOFTMAX_PATH, "import torch\n", f"import torch\n\n{LEAK}\n")
    assert tree.build().ok


def test_a_whole_solution_leaks_in_code_too(tree: Checkout) -> None:
    """A cell that holds most of a solution is a leak, although its lines are then shown in code."""
    lines = [line.strip() for line in (tree.root / SOFTMAX_PATH).read_text(encoding="utf-8").splitlines()]
    region = lines[lines.index("### BEGIN SOLUTION") + 1 : lines.index("### END SOLUTION")]
    launch = [
        "block_size = triton.next_power_of_2(x.shape[1])",
        "softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK_SIZE=block_size)",
    ]
    tree.replace(
        SQUARE_PATH,
        '# %% nbgrader={"grade_id": "square',
        "# %%\n" + "\n".join(region + launch) + '\n\n# %% nbgrader={"grade_id": "square',
    )
    report = tree.build(check=True)
    assert len(report.leaks) == 1
    assert "5 of the 5 lines of the solution of 'softmax'" in report.leaks[0]


def test_a_repeated_id_is_found_across_notebooks(tree: Checkout) -> None:
    """The same id in two notebooks fails, with both places."""
    tree.replace(SQUARE_PATH, '"check-square_matrix"', '"check-softmax"')
    report = tree.build(check=True)
    assert len(report.repeated_ids) == 1
    assert SOFTMAX_PATH in report.repeated_ids[0]
    assert SQUARE_PATH in report.repeated_ids[0]


def test_a_repeated_id_is_found_in_one_notebook(tree: Checkout) -> None:
    """The same id twice in one notebook fails."""
    tree.replace(SOFTMAX_PATH, '"check-softmax"', '"softmax"')
    report = tree.build(check=True)
    assert len(report.repeated_ids) == 1
    assert not report.ok


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"points": 10', '"points": 9', "gives 9 points, the exercise 'softmax' gives 10"),
        ('"softmax", "solution"', '"softmux", "solution"', "the solution id 'softmux' is not an exercise"),
        ('"check-softmax"', '"test-softmax"', "a check cell's id must be `check-`"),
        ('"locked": true', '"locked": false', "a check cell must be locked"),
        ("\ncheck(softmax)", "\nprint(1)\ncheck(softmax)", "must hold `check(softmax)` and nothing else"),
        ("def softmax(x, out)", "def softmax(y, out)", "other parameters than `softmax(x, out)`"),
        ("def softmax(x, out)", "def soft_max(x, out)", "does not define `softmax(x, out)`"),
        ("    ### END SOLUTION\n\n\ndef", "\n\ndef", "begins inside the solution of line"),
        ('"solution": true', '"solutoin": true', "unknown nbgrader keys ['solutoin']"),
        ('nbgrader={"grade_id": "softmax"', 'nbgrad={"grade_id": "softmax"', "cell header has unknown keys ['nbgrad']"),
        (', "points": 10', "", "gives no points"),
        ('"grade_id": "check-softmax"', '"grade_id": "check softmax"', "letters, digits"),
        ("# # Fuse", "# Fuse", "notebook's title"),
        ("# %% [markdown]\n# # Fuse", "# # Fuse", "text before the first `# %%`"),
        ("../figures/bars.svg", "../figures/bar.svg", "'../figures/bar.svg' does not lead to a file"),
        ("../02_load_inline/01", "../02_load_inline/02", "does not lead to a file of the course"),
        ("_matrix.ipynb)", "_matrix.ipynb#Cube-a-matrix)", "leads to a heading"),
        ("Two bars, one half as long", "", "no alt text"),
    ],
)  # fmt: skip
def test_each_fault_of_a_source_is_a_problem(tree: Checkout, old: str, new: str, message: str) -> None:
    """A fault planted in a source fails the build with a sentence that names the file."""
    tree.replace(SOFTMAX_PATH, old, new)
    report = tree.build(check=True)
    problems = [problem for problem in report.problems if message in problem]
    assert problems, report.problems
    assert "03_fuse_a_softmax" in problems[0]
    assert not report.ok


def test_a_solution_in_another_cell_is_a_problem(tree: Checkout) -> None:
    """A region outside a solution cell is refused, and the notebook is not written."""
    tree.replace(SOFTMAX_PATH, '# %% nbgrader={"grade_id": "softmax", "solution": true}', "# %%")
    report = tree.build()
    assert any("not a solution cell" in problem for problem in report.problems)
    assert any("has no solution cell" in problem for problem in report.problems)
    assert not (tree.root / SOFTMAX_BUILT).exists()


def test_a_solution_cell_without_a_region_is_a_problem(tree: Checkout) -> None:
    """nbgrader would clear such a cell as a whole, and it would define nothing."""
    text = (tree.root / SOFTMAX_PATH).read_text(encoding="utf-8")
    tree.write(SOFTMAX_PATH, "\n".join(line for line in text.split("\n") if "SOLUTION" not in line))
    report = tree.build()
    assert any("without BEGIN SOLUTION" in problem for problem in report.problems)
    assert not (tree.root / SOFTMAX_BUILT).exists()


def test_an_exercise_in_the_wrong_notebook_is_a_problem(tree: Checkout) -> None:
    """An exercise must be in the notebook that it names."""
    (tree.root / SOFTMAX_PATH).rename(tree.root / "source/03_triton/04_other.py")
    assert any("03_fuse_a_softmax" in problem for problem in tree.build(check=True).problems)


def test_an_exercise_without_a_notebook_is_a_problem(tree: Checkout) -> None:
    """Each exercise must have its solution cell and its check cell."""
    (tree.root / SQUARE_PATH).unlink()
    problems = tree.build(check=True).problems
    assert sum("'square_matrix' has no" in problem for problem in problems) == 2


def test_a_source_that_is_not_text_is_a_problem(tree: Checkout) -> None:
    """Bytes that are not UTF-8 get one sentence."""
    (tree.root / SOFTMAX_PATH).write_bytes(b"\xff\xfe# %%")
    assert f"{SOFTMAX_PATH} is not UTF-8 text." in tree.build(check=True).problems
    assert not any("softmax' has no" in problem for problem in tree.build(check=True).problems)


def test_links_in_code_and_to_elsewhere_are_left_alone(tree: Checkout) -> None:
    """The check ignores text that only looks like a link, and links that leave the course by http."""
    prose = "# # Square\n#\n# `[a](b.md)` [web](https://example.org/x) [up](#Square)\n#\n# ```python\n# x[0](y)\n# ```"
    tree.replace(SQUARE_PATH, "# # Square a matrix", prose)
    assert tree.build(check=True).problems == ()


def test_a_picture_in_html_is_checked(tree: Checkout) -> None:
    """An `<img>` must exist and have alt text, like any other picture."""
    html = '# # Square\n#\n# <img src="../figures/none.svg" alt="a">\n#\n# Here <img src="../figures/bars.svg"> it is.'
    tree.replace(SQUARE_PATH, "# # Square a matrix", html)
    problems = tree.build(check=True).problems
    assert len(problems) == 2
    assert "does not lead to a file" in problems[0]
    assert "no alt text" in problems[1]


def test_the_report_reads_as_text(tree: Checkout) -> None:
    """The text lists what was written and each fault, and ends with a count."""
    assert report_text(tree.build()).endswith("course/ is built: 3 written, 0 unchanged.")
    assert report_text(tree.build(check=True)) == "course/ is up to date: 3 files."
    tree.replace(SOFTMAX_PATH, '"points": 10', '"points": 9')
    text = report_text(tree.build(check=True))
    assert "Out of date:\n  course/03_triton/03_fuse_a_softmax.ipynb differs from what its source makes now" in text
    assert text.endswith("2 faults to fix.")


def test_the_report_is_ready_for_json(tree: Checkout) -> None:
    """`to_dict` survives JSON and says whether the build is ok."""
    report = tree.build()
    assert json.loads(json.dumps(report.to_dict()))["ok"] is True


def test_without_a_checkout_there_is_one_sentence(tmp_path: Path) -> None:
    """An installation without `source/` says so."""
    with pytest.raises(MachineLacks, match="checkout"):
        build(root=tmp_path)


def test_the_course_is_built() -> None:
    """The course in this checkout is up to date, and has no leak, no repeated id and no other fault."""
    report = build(check=True)
    assert report.ok, report_text(report)
