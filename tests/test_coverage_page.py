"""docs/coverage.md names notebooks, sections and cells that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

_PAGE = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"
_ROW = re.compile(r"^\| (?P<what>.+?) \| \[(?P<title>.+?)\]\((?P<path>.+?)\) \| (?P<section>.+?) \| (?P<cell>.+?) \|$")
_ROWS = [row for row in map(_ROW.match, _PAGE.read_text(encoding="utf-8").splitlines()) if row]


def _code_of_section(cells: list[dict[str, Any]], heading: str) -> list[str] | None:
    """The code cells from this heading to the next one of the same or a higher level; None without such a heading."""
    level, found = 0, None
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            if level and found is not None:
                found.append(text)
            continue
        for marks, title in re.findall(r"^(#+) (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE):
            if title == heading and found is None:
                level, found = len(marks), []
            elif level and len(marks) <= level:
                level = 0
    return found


def test_every_line_of_a_table_is_read() -> None:
    """No row is left out because it has another form."""
    lines = [line for line in _PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(_ROWS) == sum(not line.startswith(("| It teaches", "| ---")) for line in lines) > 50


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row["what"])
def test_the_place_exists(row: re.Match[str]) -> None:
    """The notebook has that title and that section, and a cell of the section contains the code."""
    cells = json.loads((_PAGE.parent / row["path"]).read_text(encoding="utf-8"))["cells"]
    assert "".join(cells[0]["source"]).startswith(f"# {row['title']}\n")
    code = _code_of_section(cells, row["section"])
    assert code is not None, f"no section {row['section']!r}"
    if row["cell"] != "text":
        assert any(row["cell"].strip("`") in text for text in code), row["cell"]


def test_a_missing_section_is_found() -> None:
    """A section ends with the next heading of its level, and includes those below."""
    markdown = [{"cell_type": "markdown", "source": text} for text in ("# T", "## A", "### B", "## C")]
    cells = [part for each in markdown for part in (each, {"cell_type": "code", "source": each["source"][-1]})]
    assert _code_of_section(cells, "A") == ["A", "B"]
    assert _code_of_section(cells, "D") is None
