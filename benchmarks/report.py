"""A real report for the README, of the reference softmax.

`make bench` saves the verdict. `python -m benchmarks.report` draws `docs/report.png` from it, on any machine with a
browser.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.rows import Recorder
from grader.authoring.stubs import solution
from grader.feedback.report import as_html
from grader.judge.service import Judge
from grader.verdict import Verdict

_PICTURE = Path(__file__).parents[1] / "docs" / "report.png"
_KEPT = _PICTURE.with_suffix(".json")
_PAGE = '<body style="margin:12px;width:740px;background:#fff;font:14px system-ui"><div id="report">{}</div></body>'


def report(recorder: Recorder) -> None:
    """Grade the reference solution of `softmax` in a warm session and save the verdict as JSON."""
    with Judge() as judge:
        for _ in range(2):
            verdict = judge.grade(solution("softmax"), "softmax")
    _PICTURE.parent.mkdir(exist_ok=True)
    _KEPT.write_text(json.dumps(verdict.to_dict(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"saved the verdict of a check on {recorder.machine.gpu} in {_KEPT}")


def draw() -> Path:
    """Draw the saved verdict as a learner sees it."""
    from playwright.sync_api import sync_playwright

    from grader.doctor import find_chromium

    verdict = Verdict.from_dict(json.loads(_KEPT.read_text(encoding="utf-8")))
    html = as_html(verdict).replace("<details", "<details open")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 780, "height": 900}, device_scale_factor=2)
        page.set_content(_PAGE.format(html))
        page.locator("#report").screenshot(path=_PICTURE)
        browser.close()
    return _PICTURE


if __name__ == "__main__":
    print("drawn:", draw())
