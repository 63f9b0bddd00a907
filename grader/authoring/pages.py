"""`grader pages`: the course as a static site, so that anybody can read it before installing.

Every notebook is run as a learner gets it, without solutions, and becomes a page that requests nothing from elsewhere.
Without a GPU, the notebooks show recorded measurements. A notebook that ran before is run again only if it changed.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import nbformat
from bs4 import BeautifulSoup
from nbformat.notebooknode import NotebookNode

from grader.authoring.offline_page import OfflinePage
from grader.version import __version__

__all__ = ["write"]

_INDEX = "README.ipynb"
_CELL_LIMIT_S = 600
_COLUMNS = re.compile(r"\S {3,}\S|^ {4,}\S", re.MULTILINE)  # a table or code: no line may wrap
_STYLE = """
:root {
  color-scheme: light dark;
  --jp-mirror-editor-number-color: light-dark(#006b00, #66bb6a);
  --jp-mirror-editor-operator-color: light-dark(#8a10d8, #cf94ff);
}
body.jp-Notebook { margin: 0 auto; max-width: 64rem; padding: 0 1rem 3rem; }
nav.course { padding: 0.75rem 0; font-family: var(--jp-ui-font-family); }
nav.course a, .jp-RenderedHTMLCommon a { color: var(--jp-content-link-color); text-decoration: underline !important; }
.highlight :is(.c, .ch, .cm, .cp, .cpf, .c1, .cs) { color: light-dark(#2e6363, #7fbcbc); }
.highlight :is(.o, .ow) { color: var(--jp-mirror-editor-operator-color); }
.highlight .err { color: inherit; }
.jp-RenderedHTMLCommon .highlight { margin-bottom: 1em; }
.jp-RenderedHTMLCommon code { overflow-wrap: break-word; }
.jp-RenderedHTMLCommon pre { overflow-x: auto; white-space: pre; }
.jp-RenderedHTMLCommon table { display: block; overflow-x: auto; max-width: 100%; width: fit-content; }
math { font-family: "Cambria Math", "STIX Two Math", "Latin Modern Math", "DejaVu Math TeX Gyre", math; }
.jp-RenderedHTMLCommon math[display=block] { overflow: auto hidden; padding-block: 0.4em; }
.jp-OutputArea-output pre { overflow-wrap: anywhere; word-break: normal; }
.jp-RenderedText pre.columns { white-space: pre; }
.jp-OutputArea-output img, .jp-OutputArea-output svg, .jp-RenderedHTMLCommon img { max-width: 100%; height: auto; }
.jp-OutputArea-output code { background: none !important; }
.jp-InputArea-editor { overflow-x: auto; }
@media (max-width: 600px) {
  body.jp-Notebook { padding: 0 0.5rem 2rem; }
  .jp-Cell .jp-InputPrompt, .jp-Cell .jp-OutputPrompt { display: none; }
  /* In the template these are tables and rows, which cut off what is too wide: a block can scroll. */
  .jp-Cell :is(.jp-InputArea, .jp-InputArea-editor, .jp-MarkdownOutput, .jp-OutputArea-child, .jp-OutputArea-output) {
    box-sizing: border-box; display: block; margin-inline: 0; width: auto;
  }
}
"""


def write(course: Path, site: Path, cache: Path, run: bool = True) -> Iterator[str]:
    """Write the pages of the notebooks in `course` into `site`, which is emptied, and yield the path of each one.

    `cache` keeps the notebooks that ran. If `run` is false, none is run: a page has the outputs of `cache`, or none.
    """
    shutil.rmtree(site, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:  # what the notebooks write does not get into `course`
        copy = Path(shutil.copytree(course, Path(temporary, "course"), ignore=shutil.ignore_patterns(".*")))
        for path in sorted(found.relative_to(copy).as_posix() for found in copy.rglob("*.ipynb")):
            page = site / _address(path)
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(_page(_with_outputs(copy / path, cache, run), path), encoding="utf-8")
            yield page.relative_to(site).as_posix()


def _address(path: str) -> str:
    """The page of a notebook: `README.ipynb` is the first page."""
    return "index.html" if path == _INDEX else path.removesuffix(".ipynb") + ".html"


def _with_outputs(path: Path, cache: Path, run: bool) -> NotebookNode:
    text = path.read_bytes()
    kept = cache / f"{hashlib.sha256(text + __version__.encode()).hexdigest()[:24]}.ipynb"
    if run and not kept.is_file():
        ran = _run(_read(path), path.parent)
        cache.mkdir(parents=True, exist_ok=True)
        nbformat.write(ran, kept)  # type: ignore[no-untyped-call]
    return _read(kept if kept.is_file() else path)


def _read(path: Path) -> NotebookNode:
    return cast(NotebookNode, nbformat.read(path, as_version=4))  # type: ignore[no-untyped-call]


def _run(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run all cells; a cell that fails, as an exercise does that nobody has solved, keeps its message."""
    from nbclient import NotebookClient

    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=_CELL_LIMIT_S, allow_errors=True, resources=resources)
    with client.setup_kernel(env=dict(os.environ)):
        for at, cell in enumerate(notebook.cells):
            client.execute_cell(cell, at)
    return notebook


def _page(notebook: NotebookNode, path: str) -> str:
    options = {"theme": "light", "exclude_input_prompt": True, "exclude_output_prompt": True}
    exporter = OfflinePage(**options)  # type: ignore[no-untyped-call]
    text, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": _title(notebook, path)}})
    soup = BeautifulSoup(text, "html.parser")
    assert soup.head is not None
    assert soup.body is not None
    soup.head.append(soup.new_tag("style", string=f"@media (prefers-color-scheme: dark) {{ {_dark_theme(exporter)} }}"))
    soup.head.append(soup.new_tag("style", string=_STYLE))
    if path != _INDEX:
        _add_way_back(soup, path)
    for link in soup.select("a[href]"):
        link["href"] = _moved(str(link["href"]))
    for area in soup.select("pre, table, .jp-OutputArea-output"):
        area["tabindex"] = "0"  # a keyboard can scroll it, too
    for printed in soup.select(".jp-RenderedText pre"):
        if _COLUMNS.search(printed.get_text()):
            printed["class"] = "columns"
    for image in soup.select("img:not([alt])"):
        image["alt"] = ""
    for empty in (each for each in soup.select("th") if not each.text.strip()):
        empty.name = "td"  # it heads nothing
    return str(soup)


def _title(notebook: NotebookNode, path: str) -> str:
    first = next((line for cell in notebook.cells for line in cell.source.splitlines() if line.startswith("# ")), path)
    return str(first).removeprefix("# ")


def _dark_theme(exporter: Any) -> str:
    """JupyterLab's dark colours, from nbconvert's template: its variables."""
    (file,) = [Path(each, "static/theme-dark.css") for each in exporter.template_paths
               if Path(each, "static/theme-dark.css").is_file()][:1]  # fmt: skip
    return file.read_text(encoding="utf-8")


def _add_way_back(soup: BeautifulSoup, path: str) -> None:
    way = soup.new_tag("nav", attrs={"class": "course", "aria-label": "Course"})
    home = posixpath.relpath("index.html", posixpath.dirname(path) or ".")
    way.append(soup.new_tag("a", attrs={"href": home}, string="Syllabus"))
    assert soup.body is not None
    soup.body.insert(0, way)


def _moved(href: str) -> str:
    """A link to another notebook, as a link to its page."""
    address, mark, place = href.partition("#")
    if "//" in address or not address.endswith(".ipynb"):
        return href
    folder, name = posixpath.split(address)
    return posixpath.join(folder, _address(name)) + mark + place
