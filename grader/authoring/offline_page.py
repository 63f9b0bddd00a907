"""A notebook as an HTML page that needs no network: formulas in MathML, and widgets as still pictures.

nbconvert's own pages load MathJax, and the program that draws widgets, from other hosts. Without a network, their
formulas are raw TeX, and their widgets are missing.

    jupyter nbconvert --to offline_html notebook.ipynb
"""

from __future__ import annotations

import copy
import re
from typing import Any

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag
from nbconvert.exporters import HTMLExporter

_WIDGET = "application/vnd.jupyter.widget-view+json"
_PICTURES = ("text/html", "image/svg+xml", "image/png", "image/jpeg")

# The rendered Markdown in nbconvert's templates: `lab`, and `classic`, which feedback pages extend.
_MARKDOWN = ".jp-MarkdownOutput, .text_cell_render"
_OUTPUT = re.compile("^(jp-OutputArea|output_area)")  # a timeline's script is in its output, and loads nothing
_VERBATIM = "code, pre, script, style, math, .mathjax_ignore"  # text in which `$` starts no formula
_FORMULA = re.compile(
    r"\$\$(?P<block>.+?)\$\$|\\\[(?P<bracket>.+?)\\\]|\\\((?P<paren>.+?)\\\)"
    r"|(?<![\\$])\$(?=[^\s$])(?P<inline>[^$]*?[^\s\\$])\$(?![\d$])",
    re.DOTALL,
)
_ELSEWHERE = re.compile(r"^(https?:)?//")


class OfflinePage(HTMLExporter):
    """The exporter behind `--to offline_html`, JupyterLab's *Save and Export Notebook As*, and feedback pages."""

    export_from_notebook = "HTML without a network"

    def from_notebook_node(  # type: ignore[override]
        self, nb: Any, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page's text, and nbconvert's resources."""
        page, found = super().from_notebook_node(_with_still_pictures(nb), resources, **kw)
        return offline(page), found


def offline(page: str) -> str:
    """An exported page without requests to other hosts. TeX that cannot be converted stays as it is."""
    soup = BeautifulSoup(page, "html.parser")
    for script in soup.select("script"):
        if script.get("src") or not script.find_parent(class_=_OUTPUT):
            script.decompose()  # MathJax, RequireJS, Mermaid, and what draws widgets
    for link in soup.select("link[href]"):
        if _ELSEWHERE.match(str(link["href"])):
            link.decompose()
    for part in soup.select(_MARKDOWN):
        for text in part.find_all(string=re.compile(r"\$|\\[(\[]")):
            if not any(parent.css.match(_VERBATIM) for parent in text.parents if parent.name != "[document]"):
                _set_formulas(text)
    if soup.html and soup.head:
        soup.html.attrs.setdefault("lang", "en")
        if not soup.select("meta[name=viewport]"):
            width = {"name": "viewport", "content": "width=device-width, initial-scale=1"}
            soup.head.append(soup.new_tag("meta", attrs=width))
    return str(soup)


def _with_still_pictures(nb: Any) -> Any:
    """A copy of a notebook in which a widget that has a picture is shown as that picture."""
    nb = copy.deepcopy(nb)
    nb.metadata.pop("widgets", None)
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if any(picture in data for picture in _PICTURES):
                data.pop(_WIDGET, None)
    return nb


def _set_formulas(text: NavigableString) -> None:
    parts: list[str | Tag] = []
    end = 0
    for match in _FORMULA.finditer(text):
        tex = next(filter(None, match.groups()))
        formula = _mathml(tex, block=match["block"] is not None or match["bracket"] is not None)
        if formula is not None:
            parts += [text[end : match.start()], formula]
            end = match.end()
    if parts:
        text.replace_with(*(NavigableString(p) if isinstance(p, str) else p for p in [*parts, text[end:]]))


def _mathml(tex: str, *, block: bool) -> Tag | None:
    """A `math` element, or None for TeX that is not understood."""
    try:
        from latex2mathml.converter import convert, convert_to_element

        if any("<" in text for each in convert_to_element(tex).iter() for text in _texts(each)):
            return None  # `convert` does not escape it: `\text{<script>}` would be an element
        found = BeautifulSoup(convert(tex, display="block" if block else "inline"), "html.parser").math
    except Exception:  # TeX may be anything, in a learner's notebook
        return None
    if found is not None:
        if block:
            found["tabindex"] = "0"  # a keyboard can scroll a wide formula, too
        for element in found.find_all(href=True):
            del element["href"]  # nobody expects a link in a formula
        for name in found.find_all("mi", string=re.compile(r"^\w{2,}$")):  # cos x, not cosx
            name.insert_after(Tag(name="mspace", attrs={"width": "0.167em"}))
    return found


def _texts(element: Any) -> list[str]:
    """The texts in and after an element, and its attributes."""
    return [text for text in (element.text, element.tail, *element.attrib.values()) if text]
