"""`grader build`: makes every course notebook from its source, and runs all checks of a build."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from nbformat.notebooknode import NotebookNode

from grader.authoring import checks, notebooks, source_tree, stubs
from grader.authoring.prose import Results, renderer
from grader.authoring.source_tree import SourceError, Tree, checkout
from grader.exercise import Exercise
from grader.exercises import PACKAGED
from grader.words import plural

GLOSSARY, GLOSSARY_OF_CHAPTER = "glossary.ipynb", "glossary.md"


def _glossary(made: Plan, chapter: str) -> str:
    """The glossary as Markdown, because each notebook of an assignment would be collected and graded."""
    prose = "\n\n".join(cell.source for cell in made.notebooks[GLOSSARY].cells if cell.cell_type == "markdown")
    for path in made.notebooks:
        inside = path.removeprefix(f"{chapter}/") if path.startswith(f"{chapter}/") else f"../{path}"
        prose = prose.replace(f"]({path})", f"]({inside})")
    return prose + "\n"


def _self_contained(notebook: NotebookNode, path: str, made: Plan, tree: Tree, dest: Path) -> NotebookNode:
    copy = deepcopy(notebook)
    chapter = path.split("/")[0]
    for cell in copy.cells:
        for link in checks.links_in(cell.source) if cell.cell_type == "markdown" else ():
            linked = link.path_from(path)
            if link.is_local and linked == GLOSSARY:
                cell.source = cell.source.replace(link.target, GLOSSARY_OF_CHAPTER)
            if not link.is_local or linked not in made.files or linked.endswith(".ipynb"):
                continue
            inside = linked if linked.startswith(f"{chapter}/") else f"{chapter}/{linked}"
            (dest / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree.source / linked, dest / inside)
            written = unquote(urlsplit(link.target).path)
            cell.source = cell.source.replace(written, posixpath.relpath(inside, posixpath.dirname(path)))
    return copy


# The planned contents of `course/`: every file, in memory, before anything is written.


@dataclass
class Plan:
    """Paths are from the root of the course (`03_triton/03_fuse_a_softmax.ipynb`), `cells` by path from `source/`."""

    files: dict[str, bytes] = field(default_factory=dict)
    notebooks: dict[str, NotebookNode] = field(default_factory=dict)  # as learners get them
    instructors: dict[str, NotebookNode] = field(default_factory=dict)
    cells: dict[str, list[source_tree.Cell]] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)  # every path that has a source, even if it could not be made
    unreadable: set[str] = field(default_factory=set)  # sources, by path from `source/`
    problems: list[str] = field(default_factory=list)


def plan(tree: Tree, exercises: Mapping[str, Exercise]) -> Plan:
    """Make every file that can be made, and record the others as problems of the plan."""
    made = Plan()
    render = renderer(exercises, Results(tree.results), tree.source)
    for source in tree.notebooks():
        name = source.relative_to(tree.source).as_posix()
        target = name.removesuffix(".py") + ".ipynb"
        made.promised.add(target)
        try:
            text = source.read_text(encoding="utf-8")
            made.cells[name] = _checked_cells(text, f"source/{name}")
            made.instructors[target] = notebooks.instructor(text, f"source/{name}", render)
            made.notebooks[target] = notebooks.learner(made.instructors[target], f"source/{name}")
            made.files[target] = notebooks.as_bytes(made.notebooks[target])
        except (SourceError, UnicodeDecodeError) as error:
            not_text = isinstance(error, UnicodeDecodeError)
            made.problems.append(f"source/{name} is not UTF-8 text." if not_text else str(error))
            if name not in made.cells:
                made.unreadable.add(name)
    for source in tree.assets():
        path = source.relative_to(tree.source).as_posix()
        made.promised.add(path)
        made.files[path] = source.read_bytes()
    return made


def _checked_cells(text: str, name: str) -> list[source_tree.Cell]:
    """The cells, after verifying their solution regions, on which the checks rely."""
    cells = source_tree.read(text, name)
    for cell in cells:
        try:
            stubs.without_solutions(cell.text)
        except SourceError as error:
            raise SourceError(f"{name}:{cell.line}, {error}.") from None
    return cells


@dataclass(frozen=True)
class BuildReport:
    """The result of a build. `written` and `unchanged` are paths under `course/`, the rest are sentences."""

    checked: bool  # nothing was written
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

    A notebook that cannot be made, or that has a line of a solution, is not written. A file without a source is
    reported, never deleted.

    Raises:
        MachineLacks: this is not a source checkout.
    """
    tree = checkout(root)
    made = plan(tree, exercises)
    problems = [*made.problems, *checks.exercise_faults(made.cells, exercises, made.unreadable)]
    problems += checks.faults(made.notebooks, made.promised)
    found = checks.find(made.files, made.cells)
    written, unchanged, stale = [], [], []
    for path, content in made.files.items():
        target = tree.course / path
        if target.is_file() and target.read_bytes() == content:
            unchanged.append(path)
        elif check:
            what = "differs from what its source makes now" if target.exists() else "is missing"
            stale.append(f"course/{path} {what}; run `grader build`.")
        elif path not in found:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            written.append(path)
    existing = {path.relative_to(tree.course).as_posix(): path for path in tree.made()}
    for path in sorted(set(existing) - made.promised):
        stale.append(f"course/{path} has no source; delete it, or add its source.")
    on_disk = {path: file.read_bytes() for path, file in existing.items()}
    changed = {path: content for path, content in on_disk.items() if made.files.get(path) != content}
    for path, sentences in checks.find(changed, made.cells).items():
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
    """The report for a terminal, one finding per line."""
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
        lines.append(f"{plural(faults, 'fault')} to fix.")
    elif report.checked:
        lines.append(f"course/ is up to date: {plural(files, 'file')}.")
    else:
        lines.append(f"course/ is built: {len(report.written)} written, {len(report.unchanged)} unchanged.")
    return "\n".join(lines)


def instructor_notebooks(
    dest: Path, *, root: Path | None = None, exercises: Mapping[str, Exercise] = PACKAGED
) -> list[Path]:
    """Write the notebooks with their solutions, for nbgrader's `source/` folder.

    They become `dest/<chapter>/<notebook>.ipynb`. A chapter is a self-contained assignment: pictures and data
    that its notebooks link to from elsewhere are copied into `dest/<chapter>/`, and the links are changed. Notebooks
    outside a chapter are left out. Returns the notebooks' paths.

    Raises:
        MachineLacks: this is not a source checkout.
        SourceError: a source notebook has a fault.
    """
    tree = checkout(root)
    made = plan(tree, exercises)
    if made.problems:
        raise SourceError(" ".join(made.problems))
    written = []
    for path, notebook in made.instructors.items():
        if "/" not in path:
            continue  # the syllabus and the glossary belong to no assignment
        target = dest / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(notebooks.as_bytes(_self_contained(notebook, path, made, tree, dest)))
        written.append(target)
    if GLOSSARY in made.notebooks:
        for chapter in sorted({path.split("/")[0] for path in made.notebooks if "/" in path}):
            (dest / chapter / GLOSSARY_OF_CHAPTER).write_text(_glossary(made, chapter), encoding="utf-8")
    return written
