"""Figures and pictures in the README are those that were recorded."""

import json
import re

import pytest

from benchmarks.readme import README, section
from grader.results import RESULTS

ROW_KEYS = {
    "bench", "case", "metric", "value", "unit", "low", "high", "gpu", "driver", "torch", "commit", "command", "date",
}  # fmt: skip
FILES = list(RESULTS.glob("*.json"))


def test_the_readme_states_what_was_recorded():
    """The section of figures is, to the letter, what the rows of the file that it names make of it."""
    text = README.read_text(encoding="utf-8")
    named = [path for path in FILES if f"benchmarks/results/{path.name}" in text]
    assert len(named) == 1
    assert section(named[0]) in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_row_says_where_it_comes_from(path):
    """A figure without its GPU, versions, commit and command is no figure."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        assert set(row) == ROW_KEYS
        assert all(row[key] for key in ("gpu", "driver", "torch", "commit", "command", "date")), row
        assert row["low"] is None or row["low"] <= row["value"] <= row["high"], row


def test_every_picture_and_link_of_the_readme_is_there():
    """A picture that is missing is a broken promise on the first page."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert "docs/report.png" in targets
    assert [target for target in targets if not (README.parent / target).exists()] == []
