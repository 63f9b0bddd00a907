"""The report of a check in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.feedback.report import as_html
from grader.verdict import Verdict

pytestmark = pytest.mark.browser

_KEPT = Path(__file__).parents[2] / "docs" / "report.json"  # a verdict with long names of cases and two baselines


@pytest.mark.parametrize(("width", "scrolls"), [(800, False), (400, True)])
def test_the_table_of_times_fits_the_report(browser_page: Callable[..., Any], width: int, scrolls: bool) -> None:
    """At full width nothing needs scrolling. With less room the table scrolls, and the page does not."""
    verdict = Verdict.from_dict(json.loads(_KEPT.read_text(encoding="utf-8")))
    page = browser_page(viewport={"width": width, "height": 900})
    report = as_html(verdict).replace("<details", "<details open")
    page.set_content(f'<body style="font:14px system-ui">{report}</body>')
    assert (page.locator(".gr-scroll").evaluate("it => it.scrollWidth - it.clientWidth") > 1) == scrolls
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
