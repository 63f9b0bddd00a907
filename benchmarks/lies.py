"""The speed-up that each of nine lies claims on this GPU, from the unchanged cells of the notebook about them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.rows import Recorder
from grader.authoring.source_tree import read

NOTEBOOK = Path(__file__).parents[1] / "source/01_profiling/06_catch_a_lying_benchmark.py"
_LAST = "draw_claims("  # begins the first cell that needs all claims
_REPEATS = 5


def claims_of_notebook(path: Path = NOTEBOOK) -> Mapping[str, float]:
    """Return by lie the speed-up that it claims on this machine for a kernel that is no faster.

    Raises:
        LookupError: no cell draws the claims, so their end is unknown.
    """
    cells = [cell.text for cell in read(path.read_text(encoding="utf-8"), path.name) if cell.kind == "code"]
    ends = [number for number, text in enumerate(cells) if text.startswith(_LAST)]
    if not ends:
        raise LookupError(f"{path.name}: no code cell begins with {_LAST!r}; say in benchmarks/lies.py which one does.")
    names: dict[str, Any] = {"__name__": path.stem}
    with contextlib.redirect_stdout(io.StringIO()):
        for text in cells[: ends[0]]:
            exec(compile(text, path.name, "exec"), names)
    return names["claims"]  # type: ignore[no-any-return]


def lies(recorder: Recorder) -> None:
    """Rows `lies`, metric `ratio_vs_itself`: median and range of some runs of the notebook's nine lies."""
    runs = [claims_of_notebook() for _ in range(_REPEATS)]
    for lie in runs[0]:
        found = [claims[lie] for claims in runs]
        recorder.add("lies", lie, "ratio_vs_itself", "1", median(found), min(found), max(found))
