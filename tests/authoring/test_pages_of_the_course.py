"""Tests of grader.authoring.pages: a site of all notebooks, which loads nothing and whose links stay inside."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import v4

from grader.authoring import pages

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, BeautifulSoup]:
    """The page of each notebook of the course, by its address."""
    folder = tmp_path_factory.mktemp("pages")
    written = list(pages.write(ROOT / "course", folder / "site", folder / "ran", run=False))
    return {
        name: BeautifulSoup((folder / "site" / name).read_text(encoding="utf-8"), "html.parser") for name in written
    }


def test_every_notebook_has_a_page_that_loads_nothing(site: dict[str, BeautifulSoup]) -> None:
    """The syllabus is the first page. No page asks another host for anything, and each fits a phone's width."""
    notebooks = {path.relative_to(ROOT / "course").with_suffix(".html").as_posix() for path in
                 (ROOT / "course").rglob("*.ipynb")}  # fmt: skip
    assert site.keys() == notebooks - {"README.html"} | {"index.html"}
    for name, page in site.items():
        loaded = [tag.get("src") or tag.get("href") for tag in page.select("[src], link[href]")]
        loaded += re.findall(
            r"@import|url\(\s*[\"']?(?!data:|#)[^)]*", "".join(each.text for each in page.select("style"))
        )
        assert [each for each in loaded if not str(each).startswith("data:")] == [], name
        assert page.select("meta[name=viewport]"), name
        assert "prefers-color-scheme: dark" in page.select("style")[-2].text


def test_links_lead_to_pages_and_their_sections(site: dict[str, BeautifulSoup]) -> None:
    """A link to a notebook is one to its page."""
    for name, page in site.items():
        for link in page.select("a[href]"):
            parts = urlsplit(unquote(str(link["href"])))
            if parts.scheme or str(link["href"]).startswith("#"):
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), parts.path))
            assert target in site, f"{name} links to {link['href']}"
            assert not parts.fragment or site[target].find(id=parts.fragment), f"{name} links to {link['href']}"


def test_a_notebook_is_run_once(tmp_path: Path) -> None:
    """Its page shows the outputs and an error of a cell; what the notebook writes does not get into the course."""
    course, site, ran = tmp_path / "course", tmp_path / "site", tmp_path / "ran"
    course.mkdir()
    cells = [v4.new_markdown_cell("# A title"), v4.new_code_cell("open('written', 'w')\nprint(6 * 7)"),
             v4.new_code_cell("raise NotImplementedError('yours')")]  # fmt: skip
    nbformat.write(v4.new_notebook(cells=cells), course / "README.ipynb")
    assert list(pages.write(course, site, ran)) == ["index.html"]
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "<title>A title</title>" in page
    assert re.search(r"<pre[^>]*>42\n", page)
    assert "yours" in page
    assert [path.name for path in course.iterdir()] == ["README.ipynb"]
    [kept] = ran.iterdir()
    kept.write_text(kept.read_text(encoding="utf-8").replace("42", "43"), encoding="utf-8")
    list(pages.write(course, site, ran))
    assert re.search(r"<pre[^>]*>43\n", (site / "index.html").read_text(encoding="utf-8"))


_CUT_OFF = """() => [...document.querySelectorAll("body *")].filter((element) =>
  ["hidden", "clip"].includes(getComputedStyle(element).overflowX) && element.scrollWidth > element.clientWidth + 1
).map((element) => element.className)"""


@pytest.mark.browser
def test_on_a_phone_what_is_too_wide_scrolls(tmp_path: Path, browser_page: Callable[..., Any]) -> None:
    """Code, tables, formulas and printed columns keep their lines and scroll; printed prose wraps between words."""
    wide, prose = "wide = " + " + ".join(map(str, range(40))), "one sentence of many words, " * 5
    markdown = f"# A title\n\n$$a = {'b + ' * 60}c$$\n\n|{'term|' * 30}\n|{'-|' * 30}\n\n```python\n{wide}\n```"
    cell = v4.new_code_cell(wide, execution_count=1)
    cell.outputs = [v4.new_output("stream", text=text) for text in (f"name{' ' * 90}calls", prose)]
    cell.outputs.append(v4.new_output("display_data", data={"text/html": "<svg width='900' height='9'></svg>"}))
    (tmp_path / "course").mkdir()
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell(markdown), cell]), tmp_path / "course" / "README.ipynb")
    list(pages.write(tmp_path / "course", tmp_path / "site", tmp_path / "ran", run=False))
    page = browser_page(viewport={"width": 390, "height": 800})
    page.goto((tmp_path / "site" / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(_CUT_OFF) == []
    columns, words = page.locator(".jp-OutputArea-output pre").all()
    assert columns.evaluate("element => element.clientHeight") < words.evaluate("element => element.clientHeight")
    assert words.evaluate("element => getComputedStyle(element).wordBreak") == "normal"
