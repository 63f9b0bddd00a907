"""`explain` in a notebook: the cause of slowness, as HTML and as text."""

from __future__ import annotations

from typing import Any

from grader.bottleneck.evidence import Evidence
from grader.exercises import find

_ACCESS = {"kind": "load", "name": "x", "line": 2, "count": 16, "elements": 16 * 256, "idle": 0}
_CLAIM = {
    "launches": [
        {"kernel": "kern", "line": 2, "grid": [16, 1, 1], "threads": 128, "count": 1,
         "accesses": [_ACCESS | {"bytes": 16 * 1024, "fetched": 16 * 8192}]},
    ]
}  # fmt: skip


def test_the_cause_is_named_with_its_line(notebook: Any, judge: Any, monkeypatch: Any) -> None:
    """The sentence, the bar and the line are in both forms; text of the cell is escaped."""
    monkeypatch.setattr("grader.judge.service.gpus", lambda: ())
    claims = {"simulated": True, "runs": [{"case": "83 × 781", "claim": _CLAIM}], "codes": []}
    judge.act = lambda: Evidence.of_claims(find("softmax"), claims)
    cell = "def softmax(x, out):\n    out < x  # <b>"
    notebook.run(cell)

    assert notebook.run("explain(softmax)").success
    assert judge.asked == [(cell, "softmax")]
    said = " ".join(notebook.text.split())
    assert "Line 2: each warp's load touches 32 sectors of `x` where 4 would do." in said
    assert "up to 8.0× faster (by accesses counted in the simulator)" in said
    assert "fetched, not used" in said
    assert "out &lt; x  # &lt;b&gt;" in notebook.html
    assert "fetched, not used 88%" in notebook.html


def test_what_is_not_right_is_not_explained(notebook: Any, judge: Any, monkeypatch: Any) -> None:
    """It refers to `check`, and does not say that there is no cause."""
    monkeypatch.setattr("grader.judge.service.gpus", lambda: ())
    judge.act = lambda: Evidence(simulated=True)
    notebook.run("def softmax(x, out):\n    pass\n")

    assert notebook.run("explain(softmax)").success
    assert "does not run, or its answers are wrong: `check(softmax)` says why" in notebook.text
