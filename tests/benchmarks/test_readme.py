"""The README's figures are the recorded ones, and its pictures exist."""

import json
import re

import pytest

from benchmarks.readme import README, TABLES, Line, rewrite, section
from grader.results import RESULTS

ROW_KEYS = {
    "bench", "case", "metric", "value", "unit", "low", "high", "gpu", "driver", "torch", "commit", "command", "date",
}  # fmt: skip
FILES = list(RESULTS.glob("*.json"))


@pytest.mark.parametrize("gpu", TABLES)
def test_the_readme_states_what_was_recorded(gpu, tmp_path, monkeypatch):
    """Each table is made from the rows, and `make bench` would write the same one."""
    text = README.read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(text.replace("| --- |", "| old |"), encoding="utf-8")
    table = section(RESULTS / f"{gpu}.json")
    assert table in text
    monkeypatch.setattr("benchmarks.readme.section", lambda results: table)
    monkeypatch.setattr("benchmarks.readme.README", tmp_path / "README.md")
    rewrite(RESULTS / f"{gpu}.json")
    assert table in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_the_lowest_or_largest_of_several_cases_is_shown():
    """The sign does not matter. An error names a bench without rows."""
    rows = [{"bench": "b", "metric": "m", "case": str(value), "value": value} for value in (2.0, -3.0, 1.0)]
    assert Line("", "b", "m").row(rows)["value"] == 1.0
    assert Line("", "b", "m", pick=max).row(rows)["value"] == -3.0
    assert Line("", "b", "m", ("2.0",)).row(rows)["value"] == 2.0
    with pytest.raises(KeyError, match="other"):
        Line("", "other", "m").row(rows)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_row_says_where_it_comes_from(path):
    """Every row has its GPU, versions, commit and command."""
    for row in json.loads(path.read_text(encoding="utf-8")):
        assert set(row) == ROW_KEYS
        assert all(row[key] for key in ("gpu", "driver", "torch", "commit", "command", "date")), row
        assert row["low"] is None or row["low"] <= row["value"] <= row["high"], row


def test_every_picture_and_link_of_the_readme_exists():
    """All local link targets of the first page are files or folders."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert "docs/report.png" in targets
    assert [target for target in targets if not (README.parent / target).exists()] == []
