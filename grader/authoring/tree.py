"""Where the parts of a source checkout lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.errors import MachineLacks

__all__ = ["Tree", "checkout"]


@dataclass(frozen=True)
class Tree:
    """A checkout of the project, or a folder laid out like one."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def course(self) -> Path:
        return self.root / "course"

    @property
    def results(self) -> Path:
        return self.root / "benchmarks" / "results"

    def notebooks(self) -> list[Path]:
        """The source notebooks, sorted."""
        return [path for path in _files(self.source) if path.suffix == ".py"]

    def assets(self) -> list[Path]:
        """What is copied as it is: every other file under `source/`."""
        return [path for path in _files(self.source) if path.suffix != ".py"]

    def made(self) -> list[Path]:
        """The files that stand in `course/` now."""
        return _files(self.course)


def _files(folder: Path) -> list[Path]:
    def shown(path: Path) -> bool:
        parts = path.relative_to(folder).parts
        return path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts)

    return sorted(path for path in folder.rglob("*") if shown(path))


def checkout(root: Path | None = None) -> Tree:
    """The checkout at `root`, or the one that this package runs from.

    Raises:
        MachineLacks: there is no `source/`: the package was installed without its checkout.
    """
    tree = Tree(Path(__file__).resolve().parents[2] if root is None else Path(root))
    if not tree.source.is_dir():
        raise MachineLacks(
            f"There is no source/ in {tree.root}: the source notebooks and their solutions are only in a checkout of "
            "the project. Clone it and install it with `pip install -e .`."
        )
    return tree
