"""A learner's text in a notebook's outputs: JupyterLab sets TeX in HTML outputs, but not in this text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.feedback.report import as_html, note
from grader.leaderboard import site
from grader.verdict import Failure, Finding, Verdict
from tests.browser.conftest import START_S, TOKEN

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

_KEPT = Path(__file__).parents[2] / "docs" / "report.json"
TEX = r"`$\href{https://learner.test}{here}$` \(\href{https://learner.test}{see}\) $$\href{https://learner.test}{a}$$"


def test_jupyterlab_sets_no_tex_of_a_learners(
    tmp_path: Path, start_lab: Callable[..., str], open_page: Callable[[str], Any], free_port: int
) -> None:
    """No TeX is set in a report, a note or a board, but a formula next to them is."""
    verdict = Verdict.from_dict(json.loads(_KEPT.read_text(encoding="utf-8")))
    failed = replace(
        verdict,
        status="error",
        failure=Failure("exception", TEX),
        findings=(Finding("rule", f"Line 3: {TEX}", 3),),
        log=TEX,
    )
    shown = [as_html(failed), note(TEX, TEX), site.page("notebook", boards=(), message=TEX), "<p>A formula: $x^2$</p>"]
    outputs = [{"output_type": "display_data", "data": {"text/html": html}, "metadata": {}} for html in shown]
    cell = {"cell_type": "code", "id": "a", "source": "", "metadata": {}, "execution_count": 1, "outputs": outputs}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "shown.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    lab = start_lab(free_port, "--folder", tmp_path / "work")

    page = open_page(f"{lab}/lab/tree/shown.ipynb?token={TOKEN}&reset")
    page.locator(".jp-OutputArea-output mjx-container").first.wait_for(timeout=START_S * 1000)
    page.wait_for_timeout(1000)  # the formula is last, and each output is set separately
    assert page.locator(".jp-OutputArea-output mjx-container").count() == 1
    assert page.locator("a[href*='learner.test'], [*|href*='learner.test']").count() == 0
    assert page.locator(".jp-OutputArea-output").first.inner_text().count("learner.test") >= 3, "it is shown, as text"
