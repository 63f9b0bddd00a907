"""Tests of grader.authoring.offline_page: a page loads nothing, and shows formulas and pictures of widgets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import v4

from grader.authoring import offline_page
from grader.authoring.offline_page import OfflinePage

ROOT = Path(__file__).resolve().parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"


def _page(*cells: Any, **metadata: Any) -> BeautifulSoup:
    page, _ = OfflinePage().from_notebook_node(v4.new_notebook(cells=list(cells), metadata=metadata))
    return BeautifulSoup(page, "html.parser")


def _loads(page: BeautifulSoup) -> list[str]:
    """The addresses that a browser would fetch to show the page."""
    found = [tag.get("src") or tag.get("href") for tag in page.select("script[src], img[src], iframe[src], link[href]")]
    found += re.findall(r"@import\s+\S+|url\(\s*[\"']?(?!data:|#)[^)]*", "".join(s.text for s in page.select("style")))
    return [each for each in found if not each.startswith("data:")]


def test_formulas_are_mathml() -> None:
    """In text, on a line of their own, and in the HTML of a question."""
    question = "<details><summary>What is $2MN$?</summary>\n\n$a$\n\n</details>"
    page = _page(v4.new_markdown_cell(f"Let $x_1 < x_2$.\n\n$$\\frac12 \\sum_i x_i$$\n\n{question}"))
    assert [formula["display"] for formula in page.select("math")] == ["inline", "block", "inline", "inline"]
    assert page.select_one("summary math").text == "2MN"
    assert "$" not in page.select_one(".jp-MarkdownOutput").text


@pytest.mark.parametrize("source", ["`$x$` and `\\(y\\)`", "```\n$x$\n```", "from $5 to $6", r"$\begin{x$ and $x"])
def test_other_text_stays(source: str) -> None:
    """Code, prices, and TeX that is not understood."""
    page = _page(v4.new_markdown_cell(source))
    assert not page.select("math")
    assert source.strip("`\n")[:3] in page.select_one(".jp-MarkdownOutput").text


def test_a_wide_formula_can_be_scrolled_with_the_keyboard() -> None:
    """Only a block scrolls."""
    block, inline = _page(v4.new_markdown_cell("$$x + y$$ and $x$")).select("math")
    assert block["tabindex"] == "0"
    assert not inline.has_attr("tabindex")


def test_a_formula_holds_no_link() -> None:
    """A page may show a learner's text to others."""
    page = _page(v4.new_markdown_cell(r"$\href{javascript:alert(1)}{x}$"))
    assert page.select_one("math").text == "x"
    assert "javascript" not in str(page.select_one(".jp-MarkdownOutput"))


@pytest.mark.parametrize(
    "tex",
    [
        r"\text{<img/src=x/onerror=alert(1)>}",
        r"\text{<script>alert(1)</script>}",
        r"\text{<mi/onclick=alert(1)></math>} a",
        r"\class{\"><img/src=x>}{y}",
    ],
)
def test_a_formula_holds_no_markup(tex):
    """The converter does not escape it, so such a formula stays text."""
    assert offline_page._mathml(tex, block=False) is None
    escaped = tex.replace("<", "&lt;").replace(">", "&gt;")
    page = BeautifulSoup(offline_page.offline(f'<p class="jp-MarkdownOutput">${escaped}$</p>'), "html.parser")
    assert page.p.text == f"${tex}$"
    assert not page.select("img, script, math")


def test_a_widget_is_shown_as_its_picture() -> None:
    """nbconvert would show the widget, for which a page needs a program from elsewhere."""
    data = {WIDGET: {"model_id": "a", "version_major": 2}, "text/html": "<svg id='picture'></svg>"}
    output = v4.new_output("display_data", data)
    page = _page(
        v4.new_code_cell("draw()", outputs=[output]), widgets={"application/vnd.jupyter.widget-state+json": {}}
    )
    assert page.select("svg#picture")
    assert not page.select(f"script, [type='{WIDGET}']")


@pytest.mark.parametrize("name", ["02_load_inline/04_make_it_an_operator", "03_triton/06_fuse_an_attention"])
def test_a_notebook_loads_nothing(name: str) -> None:
    """No script, style, picture or font from elsewhere, and no TeX outside of code."""
    page, _ = OfflinePage().from_filename(str(ROOT / "course" / f"{name}.ipynb"))
    soup = BeautifulSoup(page, "html.parser")
    assert _loads(soup) == []
    assert len(soup.select("math")) > 10
    for part in soup.select("code, pre"):
        part.decompose()
    assert not re.search(r"\$|\\[a-z(\[]", " ".join(part.text for part in soup.select(".jp-MarkdownOutput")))


@pytest.mark.parametrize("path", sorted((ROOT / "course").rglob("*.ipynb")), ids=lambda path: path.stem)
def test_every_formula_of_the_course_is_understood(path: Path) -> None:
    """The converter knows all the TeX that the notebooks use."""
    cells = nbformat.read(path, 4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"```.*?```|`[^`\n]+`", "", text, flags=re.DOTALL)
    for match in offline_page._FORMULA.finditer(text):
        formula = offline_page._mathml(next(filter(None, match.groups())), block=False)
        assert formula is not None, match[0]
        assert not formula.select("mo:empty"), f"{match[0]} uses a command that the converter does not know"


def test_nbconvert_knows_it_by_name() -> None:
    """`jupyter nbconvert --to offline_html`, and JupyterLab's menu."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = project["entry-points"]["nbconvert.exporters"]
    assert named == {"offline_html": f"{OfflinePage.__module__}:{OfflinePage.__qualname__}"}
