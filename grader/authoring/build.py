"""`grader build`: every course notebook from its source, and every check that a build can make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.authoring import percent
from grader.authoring.errors import SourceError
from grader.authoring.tree import Tree, checkout
from grader.errors import MachineLacks
from grader.exercise import Exercise
from grader.exercises import PACKAGED

__all__ = ["BuildReport", "build", "instructor_notebooks", "report_text", "solved_notebook"]


@dataclass(frozen=True)
class BuildReport:
    """What a build did and found. `written` and `unchanged` are paths under `course/`, the rest are sentences."""

    checked: bool  # nothing was to be written
    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    repeated_ids: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether `grader build` ends with exit status 0."""
        return not (self.stale or self.leaks or self.repeated_ids or self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"ok": self.ok, **asdict(self)}


def build(
    check: bool = False, *, root: Path | None = None, exercises: Mapping[str, Exercise] = PACKAGED
) -> BuildReport:
    """Make `course/` from `source/`; with `check`, only say how it differs. Faults are reported, not raised.

    A notebook that cannot be made, or in which a line of a solution stands, is not written. A file that no source
    makes is reported, never deleted.

    Raises:
        MachineLacks: this is no source checkout, or the packages of the `dev` install are missing.
    """
    tree = checkout(root)
    from grader.authoring import checks, leaks

    try:
        from grader.authoring import links
        from grader.authoring.plan import plan
    except ModuleNotFoundError as error:
        raise MachineLacks(
            f"Building the course needs the package {error.name!r}, which is not installed here: "
            "`pip install -e '.[dev]'` in the checkout."
        ) from None

    made = plan(tree, exercises)
    problems = [*made.problems, *checks.exercise_faults(made.cells, exercises, made.unreadable)]
    problems += links.faults(made.notebooks, made.promised)
    found = leaks.find(made.files, made.cells)
    written, unchanged, stale = [], [], []
    for path, content in made.files.items():
        target = tree.course / path
        if target.is_file() and target.read_bytes() == content:
            unchanged.append(path)
        elif check:
            what = "is not what its source makes now" if target.exists() else "is missing"
            stale.append(f"course/{path} {what}; run `grader build`.")
        elif path not in found:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            written.append(path)
    standing = {path.relative_to(tree.course).as_posix(): path for path in tree.made()}
    for path in sorted(set(standing) - made.promised):
        stale.append(f"course/{path} is made by no source; delete it, or add its source.")
    on_disk = {path: file.read_bytes() for path, file in standing.items()}
    changed = {path: content for path, content in on_disk.items() if made.files.get(path) != content}
    for path, sentences in leaks.find(changed, made.cells).items():
        found.setdefault(path, []).extend(sentence for sentence in sentences if sentence not in found.get(path, ()))
    return BuildReport(
        checked=check,
        written=tuple(written),
        unchanged=tuple(unchanged),
        stale=tuple(stale),
        leaks=tuple(sentence for path in sorted(found) for sentence in found[path]),
        repeated_ids=tuple(checks.repeated_ids(made.cells)),
        problems=tuple(problems),
    )


def report_text(report: BuildReport) -> str:
    """The report for a terminal, one finding a line."""
    lines = [f"wrote course/{path}" for path in report.written]
    for title, sentences in (
        ("Out of date", report.stale),
        ("Solutions in the course", report.leaks),
        ("Repeated ids", report.repeated_ids),
        ("Problems", report.problems),
    ):
        if sentences:
            lines += [f"{title}:", *(f"  {sentence}" for sentence in sentences)]
    files = len(report.written) + len(report.unchanged)
    faults = sum(map(len, (report.stale, report.leaks, report.repeated_ids, report.problems)))
    if faults:
        lines.append(f"{faults} {'fault' if faults == 1 else 'faults'} to mend.")
    elif report.checked:
        lines.append(f"course/ is up to date: {files} files.")
    else:
        lines.append(f"course/ is built: {len(report.written)} written, {len(report.unchanged)} unchanged.")
    return "\n".join(lines)


def instructor_notebooks(
    dest: Path, *, root: Path | None = None, exercises: Mapping[str, Exercise] = PACKAGED
) -> list[Path]:
    """Write the notebooks with their solutions as nbgrader's `source/` folder has them.

    They become `dest/<chapter>/<notebook>.ipynb`. A chapter is an assignment that stands alone: pictures and data
    that its notebooks link to from elsewhere are copied into `dest/<chapter>/`, and the links follow. Notebooks that
    stand in no chapter are left out. Returns the notebooks' paths.

    Raises:
        MachineLacks: this is no source checkout.
        SourceError: a source notebook from which none can be made.
    """
    from grader.authoring.assignment import write

    return write(checkout(root), Path(dest), exercises)


def solved_notebook(path: Path, *, root: Path | None = None) -> Any:
    """A course notebook (an nbformat NotebookNode) with the reference solution in each solution cell.

    Raises:
        MachineLacks: this is no source checkout.
        SourceError: there is no solution for one of its solution cells.
    """
    import nbformat

    tree = checkout(root)
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    texts = _solution_cells(tree)
    for cell in notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if not meta.get("solution"):
            continue
        if meta.get("grade_id") not in texts:
            raise SourceError(f"{path}: no source notebook has a solution for the cell {meta.get('grade_id')!r}.")
        cell.source = texts[meta["grade_id"]]
    return notebook


def _solution_cells(tree: Tree) -> dict[str, str]:
    from grader.authoring.stubs import without_markers

    return {
        cell.nbgrader["grade_id"]: without_markers(cell.text)
        for path in tree.notebooks()
        for cell in percent.read(path.read_text(encoding="utf-8"), path.name)
        if cell.nbgrader.get("solution") and "grade_id" in cell.nbgrader
    }
