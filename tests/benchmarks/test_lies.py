"""The figures of the lies come from the notebook itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.lies import NOTEBOOK, claims_of_notebook
from grader.explore.profiling.benchmark_lies import QUESTIONS

_CELLS = """# %% [markdown]
# raise ValueError

# %%
claims = {}
print("not shown")

# %%
claims["a lie"] = 7.0

# %%
draw_claims(claims)

# %%
raise ValueError
"""


def test_the_cells_before_the_picture_are_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Code cells before the one that draws the claims run, and their output is not shown."""
    path = tmp_path / "notebook.py"
    path.write_text(_CELLS)
    assert claims_of_notebook(path) == {"a lie": 7.0}
    assert capsys.readouterr().out == ""


def test_a_notebook_that_draws_no_claims_is_an_error(tmp_path: Path) -> None:
    """The error names the missing call."""
    path = tmp_path / "notebook.py"
    path.write_text("# %%\nclaims = {}\n")
    with pytest.raises(LookupError, match="draw_claims"):
        claims_of_notebook(path)


def test_the_notebook_claims_for_each_of_the_nine() -> None:
    """The claims are in the table's order, before the cell where the run ends."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    before, after = text.split("\ndraw_claims(")
    assert re.findall(r'^claims\["(.+)"\] = ', before, re.MULTILINE) == list(QUESTIONS)
    assert "claims[" not in after
