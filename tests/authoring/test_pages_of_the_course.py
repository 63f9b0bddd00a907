"""Tests of grader.authoring.pages: a site of all notebooks, which loads nothing and whose links stay inside."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
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
