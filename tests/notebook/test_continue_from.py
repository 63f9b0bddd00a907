"""`continue_from` fills a cell with the learner's own cell of an earlier exercise."""

from __future__ import annotations

from typing import Any

import pytest

CELL = """# continue_from(ls_cupy_typed, "ls_cupy_fastmath")  # uncomment and run
kernels = {}

def ls_cupy_fastmath(t, y, freqs, out):
    kernels['ls_cupy_fastmath_kernel'] = out"""
STUB = 'def ls_cupy_fastmath(t, y, freqs, out):\n    raise NotImplementedError("not written yet")'


def _payload(notebook: Any) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []
    notebook.shell.set_next_input = lambda text, replace=False: asked.append({"text": text, "replace": replace})
    notebook.run("from grader import continue_from")
    return asked


def test_the_cell_gets_the_last_rung_under_the_new_name(notebook: Any) -> None:
    """Only whole names are exchanged, and the line that fills the cell is gone."""
    asked = _payload(notebook)
    notebook.run(CELL)

    assert notebook.run('continue_from(ls_cupy_fastmath, "ls_cupy_fatbin")').success

    (payload,) = asked
    assert payload["replace"]
    assert payload["text"].startswith("kernels = {}")
    assert "def ls_cupy_fatbin(t, y, freqs, out):" in payload["text"]
    assert "'ls_cupy_fastmath_kernel'" in payload["text"]


@pytest.mark.parametrize("cell", [STUB, "pass"])
def test_an_exercise_that_is_not_written_leaves_the_cell_as_it_is(notebook: Any, cell: str) -> None:
    """A stub, or a function that was never defined, is named in one sentence."""
    asked = _payload(notebook)
    notebook.run(cell)

    result = notebook.run('continue_from("ls_cupy_fastmath", "ls_cupy_fatbin")')

    assert asked == []
    assert "ls_cupy_fastmath" in str(result.error_in_exec)
