"""The course, built from the sources once per test process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder laid out like the checkout, with its source and recorded results, and a newly built course."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "source").symlink_to(ROOT / "source")
    (root / "benchmarks").symlink_to(ROOT / "benchmarks")
    from grader.authoring.build import build

    report = build(root=root)
    assert report.ok, report
    return root


@pytest.fixture(scope="session")
def course(checkout: Path) -> dict[str, Any]:
    """The learners' notebooks by their path in the course: "03_triton/01_add_vectors.ipynb" → notebook."""
    import nbformat

    folder = checkout / "course"
    paths = sorted(folder.rglob("*.ipynb"))
    return {path.relative_to(folder).as_posix(): nbformat.read(path, as_version=4) for path in paths}
