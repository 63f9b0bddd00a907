"""README.md and docs/architecture.md name folders and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_the_readme_shows_every_folder_of_the_package(repository: Path) -> None:
    """Every folder has a comment, and every folder shown exists."""
    tree = (repository / "README.md").read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    shown = dict(re.findall(r"^((?:  )?\w+/) +(\S.*)$", tree, flags=re.MULTILINE))
    folders = {f"  {path.parent.name}/" for path in (repository / "grader").glob("*/__init__.py")}
    assert {name for name in shown if name.startswith("  ")} == folders
    assert [name for name in shown if name[0] != " " and not (repository / name).is_dir()] == []


def test_the_page_on_the_architecture_names_files_that_exist(repository: Path) -> None:
    """The files in the drawing must exist too."""
    text = (repository / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", text))
    assert "judge/job.py" in named
    drawn = set(re.findall(r'class="h"[^>]*>([\w/]+(?:\.py|/))<', (repository / "docs/architecture.svg").read_text()))
    assert "worker/main.py" in drawn
    places = [repository, repository / "grader", repository / "grader/judge"]
    assert [name for name in sorted(named | drawn) if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize(("page", "most"), [("README.md", 900), ("SECURITY.md", 1920), ("docs/architecture.md", 740)])
def test_a_page_stays_short(repository: Path, page: str, most: int) -> None:
    """A page that is too long is not read to the end."""
    assert len((repository / page).read_text(encoding="utf-8").split()) <= most
