"""The notebooks that an instructor puts into nbgrader's `source/` folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from grader.authoring.build import instructor_notebooks
from grader.authoring.source_tree import SourceError

from .conftest import EXERCISES, SOFTMAX_BUILT, SOFTMAX_PATH, SQUARE_BUILT, Checkout

CONFIG = """\
from grader.authoring.notebooks import GENERATE
c = get_config()
c.CourseDirectory.course_id = "gpu"
c.GenerateAssignment.preprocessors = GENERATE
"""


def test_they_have_solutions_and_valid_metadata(tree: Checkout, tmp_path: Path) -> None:
    """A chapter is an assignment, its notebooks hold the solutions with their markers, and nbgrader accepts them."""
    tree.write("source/README.py", "# %% [markdown]\n# # The syllabus\n")
    paths = instructor_notebooks(tmp_path / "source", root=tree.root, exercises=EXERCISES)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        "source/02_load_inline/01_square_a_matrix.ipynb",
        "source/03_triton/03_fuse_a_softmax.ipynb",
    ]
    notebook = nbformat.read(paths[1], as_version=4)
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)
    assert "### BEGIN SOLUTION" in notebook.cells[2].source
    assert "It is worth 10 points" in notebook.cells[0].source


def test_an_assignment_is_self_contained(tree: Checkout, tmp_path: Path) -> None:
    """A picture from elsewhere is copied into the assignment, and the notebook shows that copy."""
    dest = tmp_path / "source"
    instructor_notebooks(dest, root=tree.root, exercises=EXERCISES)
    prose = nbformat.read(dest / "03_triton/03_fuse_a_softmax.ipynb", as_version=4).cells[0].source
    assert "](figures/bars.svg)" in prose
    assert (dest / "03_triton/figures/bars.svg").is_file()
    assert {path.name for path in dest.iterdir()} == {"02_load_inline", "03_triton"}


def test_an_assignment_has_the_glossary(tree: Checkout, tmp_path: Path) -> None:
    """It is a page next to the notebooks, whose links lead to it; its own links lead to the chapters."""
    first, second = "02_load_inline/01_square_a_matrix.ipynb", "03_triton/03_fuse_a_softmax.ipynb"
    tree.write("source/glossary.py", f"# %% [markdown]\n# # Glossary\n#\n# [one]({first}), [two]({second})\n")
    softmax = tree.root / SOFTMAX_PATH
    text = softmax.read_text(encoding="utf-8")
    softmax.write_text(f"{text}\n# %% [markdown]\n# See the [glossary](../glossary.ipynb).\n", encoding="utf-8")
    dest = tmp_path / "source"
    instructor_notebooks(dest, root=tree.root, exercises=EXERCISES)

    assert nbformat.read(dest / second, as_version=4).cells[-1].source == "See the [glossary](glossary.md)."
    page = (dest / "03_triton/glossary.md").read_text(encoding="utf-8")
    assert page == f"# Glossary\n\n[one](../{first}), [two](03_fuse_a_softmax.ipynb)\n"
    assert (dest / "02_load_inline/glossary.md").is_file()
    assert not list(dest.rglob("glossary.ipynb"))


def test_nothing_is_made_from_a_faulty_source(tree: Checkout, tmp_path: Path) -> None:
    """A source with a fault raises an error, and no unfinished folder is left."""
    tree.replace(SOFTMAX_PATH, "exercise(", "exorcise(")
    with pytest.raises(SourceError, match="exorcise"):
        instructor_notebooks(tmp_path / "source", root=tree.root, exercises=EXERCISES)
    assert not (tmp_path / "source").exists()


@pytest.mark.parametrize(("chapter", "built"), [("03_triton", SOFTMAX_BUILT), ("02_load_inline", SQUARE_BUILT)])
def test_nbgrader_releases_what_the_course_holds(tree: Checkout, tmp_path: Path, chapter: str, built: str) -> None:
    """`nbgrader generate_assignment` makes the same graded cells from them as the build puts into the course."""
    tree.build()
    instructor_notebooks(tmp_path / "source", root=tree.root, exercises=EXERCISES)
    (tmp_path / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", chapter]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",  # nbgrader starts `alembic` by name
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    released = nbformat.read(tmp_path / "release" / chapter / Path(built).name, as_version=4)
    course = nbformat.read(tree.root / built, as_version=4)
    graded = [[cell for cell in notebook.cells if "nbgrader" in cell.metadata] for notebook in (released, course)]
    assert graded[0] == graded[1]
    assert len(graded[0]) == 2
