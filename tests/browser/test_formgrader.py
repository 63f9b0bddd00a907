"""A hostile submission in an instructor's browser: Formgrader and feedback show a learner's text as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from grader.classroom import class_actions, course_folder
from grader.exercises import find
from tests.browser.conftest import START_S, TOKEN

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

ASSIGNMENT = "03_triton"
NOTEBOOK = "01_add_vectors"
# Each would set `ran` if it ran, by itself or by a click on the link that MathJax makes of it.
TEX = r"$\href{javascript:ran=1}{see}$ \(\href{javascript:ran=1}{here}\) $$\class{x}{\href{javascript:ran=1}{a}}$$"
MARKUP = """<img src=x onerror="ran=1"><script>ran=1</script><a href="javascript:ran=1">b</a>"""
SCRIPT = '<x xmlns:h="http://www.w3.org/1999/xhtml"><h:script>opener.ran=1;ran=1</h:script></x>'
FILES = ("a.xpdl", "b.rdf", "c.wsdl", "d.svg", "e.xhtml", "f.html", "g.xslt", "h.atom")
SOLUTION = f'''
import torch

trap = r"""{TEX} {MARKUP} ` {TEX}"""


def vector_add(x, y, out):
    torch.add(x, y, out=out); trap  # {TEX} {MARKUP}
    print(trap)
    raise ValueError(trap + "`" + trap)
'''
# The error message quotes the line, and the line's own backticks end the code early.
UNUSABLE = r"""
def vector_add(x, y, out):
    pass
!`$\href{javascript:ran=1}{see}$`
"""
_LATEST = """
const script = document.createElement("script");
script.src = document.currentScript.src.replace("latest.js", "MathJax.js");
document.head.appendChild(script);
"""  # like the file of this name on the network, which finds the latest version
OWN = "The course's own formula: $x^2 + y^2$."


def _course(folder: Path) -> Any:
    """A released course of one notebook, with a formula in the instructor's own text."""
    made = class_actions.init(folder)
    for path in (folder / "source" / ASSIGNMENT).glob("*.ipynb"):
        if path.stem != NOTEBOOK:
            path.unlink()
    path = folder / "source" / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"].append({"cell_type": "markdown", "id": "own-formula", "metadata": {}, "source": [OWN]})
    path.write_text(json.dumps(notebook), encoding="utf-8")
    class_actions.release(folder, ASSIGNMENT)
    return made


def _submit(made: Any, student: str, solution: str) -> None:
    """Puts into the exchange what a hostile learner can put there without special rights."""
    exchange = Path(made.exchange) / made.course_id
    notebook = json.loads((exchange / "outbound" / ASSIGNMENT / f"{NOTEBOOK}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "vector_add":
            cell["source"] = [solution]
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": MARKUP, "text/markdown": TEX}}
    notebook["cells"] += [
        {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["\n\n```\n".join([TEX, MARKUP, TEX, MARKUP])]},
        {"cell_type": "raw", "id": "r", "metadata": {"raw_mimetype": "text/html"}, "source": [MARKUP, TEX]},
        {"cell_type": "code", "id": "c", "metadata": {}, "source": [f"# {TEX} {MARKUP}"], "execution_count": 1,
         "outputs": [output]},
    ]  # fmt: skip
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    folder = exchange / "inbound" / f"{student}+{ASSIGNMENT}+{when}"
    folder.mkdir()
    (folder / f"{NOTEBOOK}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    for name in FILES:
        (folder / name).write_text(SCRIPT, encoding="utf-8")


def _with_mathjax(page: Any) -> None:
    """Answer the page's requests to MathJax's network from a package, and block all other requests."""
    static = resources.files("jupyter_server_mathjax") / "static"

    def answer(route: Any) -> Any:
        path = re.sub(r"^https?://[^/]+/.*?/mathjax/[^/]+/", "", route.request.url).partition("?")[0]
        asked, given = Path(path).stem, "TeX-AMS-MML_HTMLorMML-full"
        if path == "latest.js":
            return route.fulfill(body=_LATEST, content_type="application/javascript")
        if asked.startswith("TeX-"):  # the package has one configuration, and each reports its name when loaded
            path = f"config/{given}.js"
        if (static / path).is_file():
            text = (static / path).read_text(encoding="utf-8")
            return route.fulfill(body=text.replace(given, asked), content_type="application/javascript")
        return route.abort()

    page.route(re.compile(r"^https?://(?!127\.0\.0\.1[:/])"), answer)


def _nothing_runs(page: Any) -> None:
    """MathJax has set the course's own formula, and none of the learner's text is a link, a script or a formula."""
    page.wait_for_function("() => window.MathJax && MathJax.Hub && MathJax.Hub.getAllJax().length")
    page.wait_for_timeout(1000)
    formulas = page.evaluate("() => MathJax.Hub.getAllJax().map(jax => jax.originalText)")
    assert "x^2 + y^2" in formulas
    assert not [formula for formula in formulas if "href" in formula]
    _no_text_of_the_learners_runs(page)


def _nothing_runs_without_mathjax(page: Any) -> None:
    """A feedback page has the course's own formula as MathML, and loads no scripts for formulas."""
    assert page.evaluate("() => typeof MathJax") == "undefined"
    assert [" ".join(each.split()) for each in page.locator("math").all_text_contents()] == ["x2+y2"]
    _no_text_of_the_learners_runs(page)


def _no_text_of_the_learners_runs(page: Any) -> None:
    assert page.locator("a[href^='javascript:' i], img[onerror], a[*|href^='javascript:' i]").count() == 0
    assert "javascript:ran=1" in page.inner_text("body"), "what the learner wrote is shown, as text"
    for link in page.locator("a", has_text=re.compile("^(see|here|a|b)$")).all():
        link.click()
    assert page.evaluate("() => typeof ran") == "undefined"


def test_nothing_of_a_hostile_submission_runs_in_formgrader_or_feedback(
    tmp_path: Path, start_lab: Callable[..., str], browser_page: Callable[..., Any], free_port: int,
    shoot: Callable[[Any, str], None],
) -> None:  # fmt: skip
    """Its texts, outputs and extra files do not run, while the course's own formulas are set."""
    made = _course(tmp_path / "course")
    _submit(made, "eve", SOLUTION)
    _submit(made, "mal", UNUSABLE)
    result = class_actions.autograde(tmp_path / "course", ASSIGNMENT)
    assert [(each.student, each.score, each.max_score) for each in result.students] == [
        (student, 0, find("vector_add").max_points) for student in ("eve", "mal")
    ]
    desk = start_lab(free_port, "--instructor", tmp_path / "course")

    page = browser_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(START_S * 1000)
    _with_mathjax(page)
    api = course_folder.api(tmp_path / "course")
    for student in ("eve", "mal"):
        with api.gradebook as gradebook:
            number = gradebook.find_submission_notebook(NOTEBOOK, ASSIGNMENT, student).id
        shown = f"{desk}/formgrader/submissions/{number}"
        page.goto(f"{shown}/?token={TOKEN}")
        page.get_by_text("The course's own formula").first.wait_for()
        _nothing_runs(page)
        shoot(page, f"{student}_in_formgrader")
        for name in FILES:
            assert page.request.get(f"{shown}/{name}").status == 404, name
        feedback = tmp_path / "course" / "feedback" / student / ASSIGNMENT
        assert {path.suffix for path in feedback.iterdir() if path.name != ".shown"} <= {".html", ".txt"}
        page.goto((feedback / f"{NOTEBOOK}.html").as_uri())
        _nothing_runs_without_mathjax(page)
        shoot(page, f"{student}_in_feedback")
