"""Links and pictures in Markdown cells: local ones must lead somewhere, pictures need alt text."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from nbformat.notebooknode import NotebookNode

__all__ = ["Link", "faults", "links_in"]

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


@dataclass(frozen=True)
class Link:
    """A link or a picture; `alt` is None for a link."""

    target: str
    alt: str | None = None

    @property
    def is_local(self) -> bool:
        parts = urlsplit(self.target)
        return not parts.scheme and not parts.netloc

    def path_from(self, notebook: str) -> str:
        """The path that is meant, from the root of the course; the notebook's own for a bare `#anchor`."""
        path = unquote(urlsplit(self.target).path)
        return posixpath.normpath(posixpath.join(posixpath.dirname(notebook), path)) if path else notebook


def links_in(markdown: str) -> list[Link]:
    """The links and pictures of a Markdown text, in Markdown or in HTML; what stands in code is none."""
    return [link for token in _MARKDOWN.parse(markdown) for link in _links(token)]


def faults(notebooks: Mapping[str, NotebookNode], files: Collection[str]) -> list[str]:
    """A sentence for each link that leads nowhere and each picture without alt text.

    `notebooks` are the course's, by path from its root; `files` are all paths that the course has.
    """
    anchors = {path: _anchors(notebook) for path, notebook in notebooks.items()}
    found = []
    for path, notebook in notebooks.items():
        for cell in notebook.cells:
            for link in links_in(cell.source) if cell.cell_type == "markdown" else ():
                fault = _fault(link, path, files, anchors)
                if fault:
                    found.append(f"course/{path}, cell {cell.id}: {fault}.")
    return found


def _fault(link: Link, path: str, files: Collection[str], anchors: Mapping[str, set[str]]) -> str:
    if link.alt is not None and not link.alt.strip():
        return f"the picture {link.target!r} has no alt text"
    if not link.is_local:
        return ""
    target = link.path_from(path)
    if link.target.startswith("/"):
        return f"the link {link.target!r} is absolute: write it from the notebook's own folder"
    if target not in files and not any(name.startswith(f"{target}/") for name in files):
        return f"the link {link.target!r} leads to no file of the course"
    fragment = unquote(urlsplit(link.target).fragment)
    if fragment and target in anchors and fragment not in anchors[target]:
        return f"the link {link.target!r} leads to a heading that course/{target} does not have"
    return ""


def _anchors(notebook: NotebookNode) -> set[str]:
    """The headings' ids as Jupyter makes them: the text with `-` for each space."""
    found = set()
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        tokens = _MARKDOWN.parse(cell.source)
        for opening, inline in pairwise(tokens):
            if opening.type == "heading_open":
                text = "".join(child.content for child in inline.children or ())
                found.add(text.replace(" ", "-"))
    return found


def _links(token: Token) -> Iterator[Link]:
    if token.type == "link_open":
        yield Link(str(token.attrs["href"]))
    elif token.type == "image":
        yield Link(str(token.attrs["src"]), alt=token.content)
    elif token.type in ("html_block", "html_inline"):
        parser = _Tags()
        parser.feed(token.content)
        yield from parser.found
    for child in (token.children or ()) if token.type == "inline" else ():
        yield from _links(child)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "img":
            self.found.append(Link(given.get("src") or "", alt=given.get("alt") or ""))
        elif tag == "a" and given.get("href"):
            self.found.append(Link(given["href"] or ""))
        elif tag in ("source", "video", "iframe") and given.get("src"):
            self.found.append(Link(given["src"] or ""))
