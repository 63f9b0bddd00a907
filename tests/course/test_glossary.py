"""The glossary: each term is explained in one line, and is in bold in the notebook that teaches it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from grader.exercises import CHAPTERS

_ROW = re.compile(r"^\| \*\*(.+?)\*\* \| (.+?) \| \[(.+?)\]\((.+?)\) \|$")
_HEAD = ["| term | meaning | taught in |", "| :--- | :--- | :--- |"]


def _sections(course: dict[str, Any]) -> dict[str, list[str]]:
    """The lines of each chapter's table, by the chapter's title."""
    found = {}
    for cell in course["glossary.ipynb"].cells[1:]:
        title, _, table = cell.source.partition("\n\n")
        found[title.removeprefix("## ")] = table.splitlines()
    return found


def _rows(course: dict[str, Any], title: str) -> list[tuple[str, str, str, str]]:
    table = _sections(course)[title]
    assert table[:2] == _HEAD
    rows = [_ROW.match(line) for line in table[2:]]
    assert all(rows), [line for line, row in zip(table[2:], rows, strict=True) if not row]
    return [(row[1], row[2], row[3], row[4]) for row in rows if row]


def _bold(notebook: Any) -> set[str]:
    """The words in bold; `**` in code is a power."""
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    prose = re.sub(r"```.*?```|`[^`\n]+`", lambda code: code[0].replace("*", ""), prose, flags=re.DOTALL)
    found = re.findall(r"\*\*(?=\S)((?:(?!\n\n).)+?)(?<=\S)\*\*", prose, re.DOTALL)
    return {" ".join(each.split()).strip(" .:").lower() for each in found}


def test_it_has_a_section_for_each_chapter(course: dict[str, Any]) -> None:
    """The sections have the titles of the chapters, in their order."""
    assert list(_sections(course)) == list(CHAPTERS.values())


@pytest.mark.parametrize("title", CHAPTERS.values())
def test_a_term_is_in_bold_where_it_is_taught(course: dict[str, Any], title: str) -> None:
    """A reader who follows a term's link finds the term in bold there, in a notebook of this chapter."""
    (chapter,) = (folder for folder, its_title in CHAPTERS.items() if its_title == title)
    rows = _rows(course, title)
    assert rows
    syllabus = "\n".join(cell.source for cell in course["README.ipynb"].cells)
    for term, _, link_text, path in rows:
        assert path.startswith(f"{chapter}/"), term
        assert f"[{link_text}]({path})" in syllabus, term
        assert {term.lower(), f"{term.lower()}s"} & _bold(course[path]), f"{term} is not in bold in {path}"


@pytest.mark.parametrize("title", CHAPTERS.values())
def test_terms_are_in_order_and_explained_in_a_line(course: dict[str, Any], title: str) -> None:
    """Terms are in alphabetical order, and no explanation is longer than 25 words."""
    rows = _rows(course, title)
    terms = [term.lower() for term, *_ in rows]
    assert terms == sorted(terms)
    assert {term: meaning for term, meaning, *_ in rows if not 3 <= len(meaning.split()) <= 25} == {}


@pytest.mark.parametrize("title", CHAPTERS.values())
def test_no_term_is_explained_twice(course: dict[str, Any], title: str) -> None:
    """A chapter explains a term once. Others may explain it again, since chapters do not depend on each other."""
    terms = [term.lower() for term, *_ in _rows(course, title)]
    assert len(terms) == len(set(terms)), sorted(term for term in terms if terms.count(term) > 1)
