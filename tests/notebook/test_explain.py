"""`explain` in a notebook: the cause of slowness, as HTML and as text."""

from __future__ import annotations

from typing import Any

from grader.bottleneck.evidence import Evidence
from grader.errors import JudgeStopped
from grader.exercises import find
from tests.feedback.verdicts import ALL
from tests.notebook.conftest import raises

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
    assert "Line 2: a warp's load of `x` touches 32 sectors of 32 bytes where 4 would do." in said
    assert "(estimated 8.0× faster, not timed; evidence: accesses counted in the simulator)" in said
    assert "fetched, not used" in said
    assert "out &lt; x  # &lt;b&gt;" in notebook.html
    assert "fetched, not used 88%" in notebook.html
    assert notebook.run("explain(softmax, counters=True)").success
    assert "Measured by counters" in notebook.html
    assert "Hardware counters were not read" in notebook.text


def test_what_is_not_right_is_not_explained(notebook: Any, judge: Any, monkeypatch: Any) -> None:
    """It refers to `check`, and does not say that there is no cause."""
    monkeypatch.setattr("grader.judge.service.gpus", lambda: ())
    judge.act = lambda: Evidence(simulated=True)
    notebook.run("def softmax(x, out):\n    pass\n")

    assert notebook.run("explain(softmax)").success
    assert "takes too long here, or gives wrong answers: `check(softmax)` says why" in " ".join(notebook.text.split())


def test_a_missed_gate_is_explained_in_the_report_of_check(notebook: Any, judge: Any) -> None:
    """The simulator's causes follow the verdict's own. The gain is never above the headroom."""
    claims = {"simulated": True, "runs": [{"case": "83 × 781", "claim": _CLAIM}], "codes": []}
    judge.verdict = ALL["slow"]
    shown = []
    notebook.run("def softmax(x, out):\n    pass\n")

    def watch() -> Evidence:
        shown.append(notebook.shell.display_pub.outputs[-1]["data"]["text/plain"])
        return Evidence.of_claims(find("softmax"), claims)

    judge.grades_only = True
    judge.act = watch
    assert notebook.run("check(softmax)").success
    assert "1.07× as fast" in shown[0]  # the whole report is there before the simulator is asked
    assert "shows no cause" in " ".join(shown[0].split())
    said = " ".join(notebook.text.split())
    assert "Line 2: a warp's load of `x` touches 32 sectors of 32 bytes where 4 would do." in said
    assert "up to 1.7× faster" in said


def test_a_report_stands_if_the_simulator_cannot_be_asked(notebook: Any, judge: Any) -> None:
    """An interrupt, or a judge that stops, leaves the report as it was."""
    judge.verdict, judge.grades_only, judge.act = ALL["slow"], True, raises(JudgeStopped("The judge ended."))
    notebook.run("def softmax(x, out):\n    pass\n")
    assert notebook.run("check(softmax)").success
    assert "1.07× as fast" in notebook.text
