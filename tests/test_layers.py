"""The import rules of `grader/`: no circle of modules, and only one direction between folders."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

import pytest

Graph = Mapping[str, frozenset[str]]  # by module: the modules that it imports

# From the bottom up: an import goes to a line further up in this list, or stays in its folder. Names are folders and
# modules of `grader/`; those on one line do not import each other.
LAYERS = [
    "installation",
    "errors exercise files hardware protocol results verdict version words",
    "worker",
    "exercises",
    "submission",
    "bottleneck",
    "feedback judge",
    "authoring doctor explore",
    "leaderboard",
    "classroom notebook",
    "grader lab server",  # `grader` is grader/__init__.py: what a notebook imports
    "cli",
    "__main__",
]


@functools.cache
def imports(repository: Path) -> Graph:
    """Every import of each module, inside functions and under TYPE_CHECKING as well. A package is a module too."""
    paths = {_name(path.relative_to(repository)): path for path in (repository / "grader").rglob("*.py")}
    return {name: frozenset(_imported(path, paths) - {name}) for name, path in paths.items()}


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, known: Mapping[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else node.module for name in names}
    return found & known.keys()


def circle(graph: Graph) -> list[str]:
    """Modules that each import the next, the last being the first again; empty without a circle."""
    done: set[str] = set()

    def below(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        found = next(filter(None, (below(each, [*way, name]) for each in sorted(graph[name]))), [])
        done.add(name)
        return found

    return next(filter(None, (below(name, []) for name in sorted(graph))), [])


def upward(graph: Graph) -> list[str]:
    """Imports that do not go down in `LAYERS`, as "module -> module"."""
    rank = {name: number for number, line in enumerate(LAYERS) for name in line.split()}
    return [
        f"{name} -> {other}"
        for name, others in sorted(graph.items())
        for other in sorted(others)
        if _folder(name) != _folder(other) and rank[_folder(name)] <= rank[_folder(other)]
    ]


def _folder(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_every_folder_has_a_layer(repository: Path) -> None:
    """A new folder must be added to the list, and a removed one deleted from it."""
    assert {_folder(name) for name in imports(repository)} == {name for line in LAYERS for name in line.split()}


def test_no_module_imports_itself_by_way_of_others(repository: Path) -> None:
    """An import inside a function, or only for types, closes a circle too: shared code belongs below both modules."""
    assert " -> ".join(circle(imports(repository))) == ""


def test_folders_import_one_way(repository: Path) -> None:
    """The failure names the imports that break the rule."""
    assert upward(imports(repository)) == []


def test_the_judge_and_the_worker_never_import_each_other(repository: Path) -> None:
    """One is trusted, the other is not; they share only `protocol/`."""
    sides = {"judge", "worker"}
    pairs = [(a, b) for a, others in imports(repository).items() for b in others]
    assert [(a, b) for a, b in pairs if {_folder(a), _folder(b)} == sides] == []


def test_the_ways_in_ask_the_service(repository: Path) -> None:
    """A caller has no worker, buffer or clock of its own, but may ask which sandbox there is."""
    callers = {"classroom", "cli", "doctor", "leaderboard", "notebook", "server"}
    open_to_them = {"grader.judge.service", "grader.judge.sandbox"}
    pairs = [(a, b) for a, others in imports(repository).items() for b in others if _folder(a) in callers]
    assert [(a, b) for a, b in pairs if _folder(b) == "judge" and b not in open_to_them] == []


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c", "b"]),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
    ],
)
def test_a_circle_is_found(graph: dict[str, set[str]], found: list[str]) -> None:
    """The result has the modules of the circle."""
    assert circle({name: frozenset(others) for name, others in graph.items()}) == found


def test_an_import_that_goes_up_is_found() -> None:
    """An import between two folders of the same layer counts too."""
    graph = {
        "grader.errors": frozenset({"grader.judge.job"}),
        "grader.judge.job": frozenset({"grader.feedback.report"}),
    }
    assert upward(graph) == ["grader.errors -> grader.judge.job", "grader.judge.job -> grader.feedback.report"]


def test_imports_in_functions_and_for_types_are_seen(tmp_path: Path) -> None:
    """Imports of a module, of a name in a module, and of a package are found."""
    (tmp_path / "grader/a").mkdir(parents=True)
    (tmp_path / "grader/a/__init__.py").write_text("")
    (tmp_path / "grader/b.py").write_text("")
    (tmp_path / "grader/c.py").write_text(
        "import os\nif TYPE_CHECKING:\n    from grader.b import x\ndef f():\n    from grader import a\n"
    )
    assert imports(tmp_path)["grader.c"] == {"grader.a", "grader.b"}
