"""The small reader of py:percent files."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest

from grader.authoring import source_tree
from grader.authoring.source_tree import SourceError, checkout

CRAFTED = '''\
# %% [markdown] tags=["a b", "c=d"]
# # Title
#
# Prose with `# %%` in it, and
#    an indent.

# %% [md]
# A short name for Markdown.

# %%
x = """
# not Markdown
"""


def f():
    return 1


# %% A title nbgrader={"grade_id": "f-1", "solution": true} tags=["x"]
# a comment
g = f()

# %% [raw]
# raw text

# %%
'''


def as_read(text: str) -> list[tuple[str, str, object, object]]:
    return [(cell.kind, cell.text, cell.nbgrader, cell.metadata.get("tags")) for cell in source_tree.read(text)]


def as_jupytext_reads(text: str) -> list[tuple[str, str, object, object]]:
    notebook = jupytext.reads(text, fmt={"extension": ".py", "format_name": "percent"})
    return [
        (cell.cell_type, cell.source, cell.metadata.get("nbgrader", {}), cell.metadata.get("tags"))
        for cell in notebook.cells
    ]


def test_cells_equal_those_of_jupytext() -> None:
    """Kind, text, tags and nbgrader metadata of every cell are what jupytext reads."""
    assert as_read(CRAFTED) == as_jupytext_reads(CRAFTED)
    assert len(as_read(CRAFTED)) == 6


@pytest.mark.parametrize("path", checkout().notebooks(), ids=lambda path: path.stem)
def test_cells_of_the_course_equal_those_of_jupytext(path: Path) -> None:
    """The reader agrees with jupytext on every source notebook, except for magics in cells that are not graded."""
    text = path.read_text(encoding="utf-8")
    for ours, theirs in zip(as_read(text), as_jupytext_reads(text), strict=True):
        assert ours[0] == theirs[0]
        assert ours[2:] == theirs[2:]
        if not theirs[1].lstrip().startswith("%"):
            assert ours[1] == theirs[1]


def test_a_cell_knows_its_line() -> None:
    """A cell's line is that of its header, so that a message can name it."""
    lines = CRAFTED.splitlines()
    assert all(lines[cell.line - 1].startswith("# %%") for cell in source_tree.read(CRAFTED))


def test_a_header_that_is_not_json_is_named() -> None:
    """Metadata that is not JSON is refused with its file and line."""
    with pytest.raises(SourceError, match=r"softmax\.py:3: the value of `nbgrader`"):
        source_tree.read('# %%\nx = 1\n# %% nbgrader={"grade_id": softmax}\n', "softmax.py")
