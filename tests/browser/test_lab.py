"""JupyterLab in a real browser: a learner solves and submits, an instructor collects and autogrades from Formgrader.

The pictures go to the folder in GRADER_SCREENSHOTS, or by default to pytest's own.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.authoring import stubs
from grader.classroom import class_actions
from grader.exercises import find
from tests.browser.conftest import START_S, TOKEN
from tests.pace import PACE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1800)]

ASSIGNMENT = "03_triton"
RUN_S = 400 * PACE  # a whole notebook on two busy cores, Triton interpreted
DROPPED_S = 10 * PACE  # running cells show it at once; after this long without a sign they were dropped

# The status bar's text about the kernel of the notebook in front. The notebook's own indicator will not do: it says
# idle as soon as it is drawn, before there is a kernel, and JupyterLab silently drops cells that are run then.
KERNEL = "#jp-main-statusbar [title^='Change kernel for']"


def choose(page: Any, menu: str, item: str) -> None:
    """Click an item of JupyterLab's menu bar."""
    page.locator(".lm-MenuBar-itemLabel", has_text=menu).click()
    page.locator(".lm-Menu-itemLabel").get_by_text(item, exact=True).click()


def kernel_idle(page: Any) -> None:
    """Wait until the kernel of the notebook in front is connected and has nothing to do."""
    try:
        page.locator(KERNEL, has_text="| Idle").wait_for(timeout=RUN_S * 1000)
    except Exception as error:
        raise AssertionError(f"no idle kernel; {shown(page)}") from error


def run_all(page: Any) -> None:
    """Run all cells of a notebook that was never run, and wait for the first number."""
    limit = time.monotonic() + RUN_S
    tries = 0
    while time.monotonic() < limit:
        kernel_idle(page)
        choose(page, "Run", "Run All Cells")
        tries += 1
        # Do not try again while a cell waits for its number. No cell waits if JupyterLab had no kernel to run it,
        # or has lost that kernel since.
        dropped = time.monotonic() + DROPPED_S
        while time.monotonic() < min(dropped, limit):
            prompts = "".join(page.locator(".jp-Notebook .jp-InputPrompt").all_inner_texts())
            if re.search(r"\d", prompts):
                return
            if "*" in prompts:
                dropped = time.monotonic() + DROPPED_S
            page.wait_for_timeout(200)
    raise AssertionError(f"no cell was run, after {tries} × Run All Cells; {shown(page)}")


def run_finished(page: Any) -> None:
    """Wait until the kernel has answered and no cell waits to be run."""
    kernel_idle(page)
    page.wait_for_function(
        "() => ![...document.querySelectorAll('.jp-InputPrompt')].some(prompt => prompt.innerText.includes('[*]'))",
        timeout=RUN_S * 1000,
    )


def shown(page: Any) -> str:
    """The kernel's state and what the notebook shows, for a failure's message."""
    kernel = " ".join(page.locator(KERNEL).all_inner_texts()) or "not in the status bar"
    texts = page.locator(".jp-Dialog, .jp-Notebook .jp-InputPrompt, .jp-OutputArea-output").all_inner_texts()
    return f"the kernel is {kernel}; shown:\n" + "\n".join(texts)


def cell_with(page: Any, text: str) -> Any:
    """The code cell whose editor holds this text."""
    return page.locator(".jp-CodeCell", has=page.locator(".cm-content", has_text=text))


def reported(page: Any, cell: Any, text: str) -> None:
    """Wait until a cell has printed this text; a failure quotes what the notebook shows instead."""
    try:
        cell.locator(".jp-OutputArea-output", has_text=text).wait_for(timeout=RUN_S * 1000)
    except Exception as error:
        raise AssertionError(f"no {text!r}; {shown(page)}") from error


def run_cell(page: Any, cell: Any) -> None:
    """Run a cell as a learner does, with Shift+Enter, and wait for its number to change."""
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    try:
        page.wait_for_function(
            "([element, before]) => /\\d/.test(element.innerText) && element.innerText !== before",
            arg=[prompt.element_handle(), before],
            timeout=RUN_S * 1000,
        )
    except Exception as error:
        raise AssertionError(f"the cell {before} was not run; {shown(page)}") from error


def test_learner_and_instructor_in_jupyterlab(
    tmp_path: Path,
    start_lab: Callable[..., str],
    open_page: Callable[[str], Any],
    free_port: int,
    shoot: Callable[[Any, str], None],
) -> None:
    """Fetch, open, run, solve, see the report, submit; then collect, autograde and give feedback from Formgrader."""
    exercise = find("softmax")
    made = class_actions.init(tmp_path / "course")
    class_actions.release(tmp_path / "course", ASSIGNMENT)

    # The learner fetches the assignment.
    lab = start_lab(free_port, "--classroom", made.exchange, "--folder", tmp_path / "learner")
    page = open_page(f"{lab}/lab?token={TOKEN}&reset")
    choose(page, "Nbgrader", "Assignment List")
    page.get_by_role("button", name="Fetch").wait_for()
    shoot(page, "assignment_list")
    page.get_by_role("button", name="Fetch").click()
    page.get_by_role("button", name="Submit").wait_for()
    assert (tmp_path / "learner" / ASSIGNMENT / f"{exercise.notebook}.ipynb").is_file()

    # The learner opens the notebook and runs it as it is.
    page.goto(f"{lab}/lab/tree/{ASSIGNMENT}/{exercise.notebook}.ipynb?token={TOKEN}&reset")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    shoot(page, "notebook")
    run_all(page)
    check = cell_with(page, "check(softmax)")
    reported(page, check, "0 of 10 points")
    run_finished(page)
    check.scroll_into_view_if_needed()
    shoot(page, "report_unsolved")
    assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']").count() == 0

    # The learner solves the exercise and checks it.
    solution = cell_with(page, "def softmax(x, out)")
    solution.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(stubs.solution("softmax"))
    shoot(page, "solution")
    run_cell(page, solution)
    run_cell(page, check)
    report = check.locator(".jp-OutputArea-output")
    report.get_by_text(f"{len(exercise.simulator_cases)} of {len(exercise.simulator_cases)} cases passed").or_(
        report.get_by_text(f"{len(exercise.cases)} of {len(exercise.cases)} cases passed")
    ).first.wait_for()
    check.scroll_into_view_if_needed()
    shoot(page, "report_solved")

    # The learner saves and submits.
    page.keyboard.press("Control+s")
    notebook = tmp_path / "learner" / ASSIGNMENT / f"{exercise.notebook}.ipynb"
    _wait_until(lambda: stubs.solution("softmax").splitlines()[-1] in notebook.read_text(encoding="utf-8"))
    choose(page, "Nbgrader", "Assignment List")
    page.get_by_role("button", name="Submit").click()
    # Do not wait until "There are no submitted assignments." is hidden: it is also hidden while the list loads.
    page.get_by_role("button", name="Fetch Feedback").wait_for()
    shoot(page, "submitted")
    (inbox,) = (Path(made.exchange) / made.course_id / "inbound").iterdir()
    student = inbox.name.split("+")[0]

    # The instructor collects, autogrades and gives feedback.
    desk = start_lab(_other_port(free_port), "--instructor", tmp_path / "course")
    office = open_page(f"{desk}/lab?token={TOKEN}&reset")
    choose(office, "Nbgrader", "Formgrader")
    formgrader = office.frame_locator("iframe")
    row = formgrader.locator("tr", has=formgrader.locator("td.name", has_text=ASSIGNMENT))
    row.locator("td.collect a").wait_for()
    shoot(office, "formgrader")
    row.locator("td.collect a").click()
    _dismiss(formgrader, "collected")
    row.locator("td.num-submissions a").click()
    entry = formgrader.locator("tr", has=formgrader.locator("td.student-id", has_text=student))
    entry.locator("td.autograde a").click()
    formgrader.locator(".modal-title", has_text="Success").wait_for(timeout=RUN_S * 1000)
    shoot(office, "autograded")
    _dismiss(formgrader, "autograded")
    entry.locator("td.status", has_text="graded").wait_for()
    for action in ("generate-feedback", "release-feedback"):
        entry.locator(f"td.{action} a").click()
        _dismiss(formgrader, "feedback")
    shoot(office, "submissions")

    # Formgrader shows the judge's score.
    status = class_actions.autograde(tmp_path / "course", ASSIGNMENT, feedback=False)
    (graded,) = status.students
    assert (graded.student, graded.outcome) == (student, "unchanged")
    assert graded.score >= exercise.correctness_points
    assert entry.locator("td.score").inner_text() == f"{graded.score:g} / {graded.max_score:g}"

    # The instructor reads the graded notebook, the learner the feedback.
    office.goto(f"{desk}/formgrader/gradebook/{ASSIGNMENT}/{exercise.notebook}?token={TOKEN}")
    office.locator("td.name a, td a").first.click()
    office.get_by_text("cases passed").first.scroll_into_view_if_needed()
    shoot(office, "graded_notebook")
    page.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text("view feedback").first.wait_for()
    shoot(page, "feedback_fetched")
    (html,) = (tmp_path / "learner" / ASSIGNMENT / "feedback").glob(f"*/{exercise.notebook}.html")
    assert "cases passed" in html.read_text(encoding="utf-8")


def _wait_until(condition: Callable[[], bool], limit_s: float = START_S) -> None:
    limit = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.2)


def _dismiss(formgrader: Any, word: str) -> None:
    """Close nbgrader's message, which must be one of success."""
    message = formgrader.locator(".modal-content", has_text=word).last
    message.locator(".modal-title").wait_for(timeout=RUN_S * 1000)
    assert message.locator(".modal-title").inner_text() == "Success", message.inner_text()
    message.get_by_role("button", name="Close").last.click()
    message.wait_for(state="hidden")


def _other_port(port: int) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = int(probe.getsockname()[1])
    return found if found != port else _other_port(port)
