"""A course folder's own exercises, `exercises/*.py`, imported like the package's and checked; and its `gates.toml`.

The course folder is, in this order:

1. the folder that a command or nbgrader was given (`use`), if it holds `exercises/` or has a mark,
2. the folder that the environment variable GRADER_COURSE names,
3. the outermost folder from the current one upwards that belongs to this user and has a mark: `nbgrader_config.py`,
   which `grader classroom init` writes, else `.grader/`, which `grader lab` writes. Below a `.grader/`, an assignment
   that was fetched may bring its own `exercises/`.

The judge and its callers import the modules. A worker never does: it gets the source of a harness or a baseline, and
the sandbox hides the folder. The outermost folder counts so that an `exercises/` which a student
hands in does not, when the grader runs inside that student's folder of a course.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import os
import shlex
import sys
import textwrap
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.errors import UnusableExercise
from grader.exercise import FILLS, Exercise
from grader.exercises import class_gates

FOLDER = "exercises"
COURSE_VARIABLE = "GRADER_COURSE"
_COURSE_MARK, _LEARNER_MARK = "nbgrader_config.py", ".grader"
_PACKAGE = "grader_course_exercises"
_OPEN_TO_ALL = 0o002

_Stamp = tuple[tuple[str, int, int], ...]  # name, time of the last change, size: of every module

_used: Path | None = None
_loaded: tuple[Path, _Stamp, dict[str, Exercise]] | None = None
_gated: tuple[tuple[Any, ...], dict[str, Exercise]] | None = None


def use(course: Path | None) -> None:
    """Make `course` the course folder of this process, where it holds `exercises/`; None: search again."""
    global _used
    _used = Path(course).expanduser().absolute() if course is not None else None


def course() -> Path | None:
    """The course folder, whether it holds exercises or not, or None if there is none."""
    named = os.environ.get(COURSE_VARIABLE)
    for given in (_used, Path(named).expanduser().absolute() if named else None):
        if given is not None and _has_mark_or_exercises(given):
            return given
    ours = [each for each in _marked() if _is_ours(each)]
    return next((each for each in ours if (each / FOLDER).is_dir()), ours[0] if ours else None)


def folder() -> Path | None:
    """The course folder's `exercises/`, or None if there is none."""
    found = course()
    return found / FOLDER if found is not None and (found / FOLDER).is_dir() else None


def passed_over() -> str:
    """One sentence about a folder of exercises at hand that is not searched, and why, or nothing."""
    if folder() is not None:
        return ""
    other = next((each for each in _marked() if (each / FOLDER).is_dir() and not _is_ours(each)), None)
    why = "it belongs to another user"
    if other is None:
        other = next((each for each in _around()[-1:] if any(each.glob(f"{FOLDER}/*.py"))), None)
        why = "its folder is not a course folder"
    if other is None:
        return ""
    named = f"{COURSE_VARIABLE}={shlex.quote(str(other))}"
    return f"{other / FOLDER} was not searched, since {why}: if you trust it, set {named}."


def exercises(taken: Mapping[str, Exercise]) -> dict[str, Exercise]:
    """The exercises of the course folder by id, in the order of their files; `taken` are the package's.

    They are imported once, and again when a file changes.

    Raises:
        UnusableExercise: a module fails, an exercise is faulty, an id or a function is defined twice, or others can
            write to a file.
    """
    global _loaded
    place = folder()
    if place is None:
        return {}
    files = sorted(path for path in place.glob("*.py") if not path.name.startswith("_"))
    stamp = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(place.glob("*.py")))
    if _loaded is None or _loaded[:2] != (place, stamp):
        _loaded = None
        _refuse_open([place, *(place / name for name, _, _ in stamp)])
        _loaded = place, stamp, _imported(place, files, taken)
    return _loaded[2]


def gates_file() -> Path | None:
    """The course folder's `gates.toml`, or None if there is none."""
    found = course()
    return found / class_gates.NAME if found is not None and (found / class_gates.NAME).is_file() else None


def with_class_gates(every: dict[str, Exercise]) -> dict[str, Exercise]:
    """The exercises with the points, gates and limits of the course folder's `gates.toml`, if there is one.

    Raises:
        UnusableExercise: the file is wrong, or others can write to it.
    """
    global _gated
    file = gates_file()
    if file is None:
        return every
    stamp = file.stat().st_mtime_ns, file.stat().st_size
    key = file, stamp, tuple(every.values())
    if _gated is None or _gated[0] != key:
        _gated = None
        _refuse_open([file])
        _gated = key, class_gates.changed(every, file)
    return _gated[1]


def file_of(exercise: Exercise) -> str:
    """The file that defines an exercise, for a message; its id where that is not known."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("grader.exercises.", f"{_PACKAGE}.")) and exercise in vars(module).values():
            return str(module.__file__)
    return exercise.id


def _marked() -> list[Path]:
    """The folders around the current one that have a mark, outermost first; see the top of this file."""
    around = _around()
    if courses := [each for each in around if (each / _COURSE_MARK).is_file()]:
        return courses[:1]
    at = next((at for at, each in enumerate(around) if (each / _LEARNER_MARK).is_dir()), None)
    return [] if at is None else around[at : at + 2]


def _around() -> list[Path]:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was deleted
        return []
    return [*reversed(here.parents), here]


def _has_mark_or_exercises(given: Path) -> bool:
    return (given / FOLDER).is_dir() or (given / _COURSE_MARK).is_file() or (given / _LEARNER_MARK).is_dir()


def _is_ours(course: Path) -> bool:
    return {each.stat().st_uid for each in (course, course / FOLDER) if each.exists()} <= {0, os.geteuid()}


def _refuse_open(paths: list[Path]) -> None:
    for path in paths:
        if path.stat().st_mode & _OPEN_TO_ALL:
            raise UnusableExercise(
                f"Every user of this machine can write to {path}, and the judge runs what is in it: close it with "
                f"`chmod o-w {shlex.quote(str(path))}`."
            )


def _imported(place: Path, files: list[Path], taken: Mapping[str, Exercise]) -> dict[str, Exercise]:
    for name in [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]:
        del sys.modules[name]
    package = ModuleType(_PACKAGE)  # its modules import each other as `from .other import …`
    package.__path__ = [str(place)]
    sys.modules[_PACKAGE] = package
    importlib.invalidate_caches()
    known = dict(taken)
    for path in files:
        module = _module(path)
        for name in getattr(module, "__all__", sorted(vars(module))):
            each = vars(module).get(name)
            if isinstance(each, Exercise) and not any(each is other for other in known.values()):
                _refuse_taken(each, path, known)
                _refuse_faulty(each, path)
                known[each.id] = each
    return {exercise_id: each for exercise_id, each in known.items() if exercise_id not in taken}


def _module(path: Path) -> ModuleType:
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # the folder is the instructor's: leave it clean
    try:
        return importlib.import_module(f"{_PACKAGE}.{path.stem}")
    except Exception as error:
        raise UnusableExercise(_why(error, path)) from None
    finally:
        sys.dont_write_bytecode = before


def _why(error: Exception, path: Path) -> str:
    """The place of an error in a module, and what to do about it."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        file, line, what = error.filename, error.lineno or 0, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [(each.filename, each.lineno or 0) for each in frames if each.filename.startswith(f"{path.parent}/")]
        file, line = own[-1] if own else (str(path), 0)
        what = str(error)
    where = f"{file}, line {line}" if line else file
    return (
        f"{where}: {type(error).__name__}: {what}. Fix it, or move {path.name} out of {path.parent}: nothing is graded "
        "here while a module of the course fails."
    )


def _refuse_faulty(exercise: Exercise, path: Path) -> None:
    if found := faults(exercise):
        raise UnusableExercise(f"{path}, exercise {exercise.id!r}: {' '.join(found)}")


def _refuse_taken(exercise: Exercise, path: Path, known: Mapping[str, Exercise]) -> None:
    for other in known.values():
        same = "id" if other.id == exercise.id else "function" if other.entry == exercise.entry else ""
        if same:
            value = exercise.id if same == "id" else exercise.entry
            raise UnusableExercise(
                f"Two exercises have the {same} {value!r}: the one in {file_of(other)} and the one in {path}. "
                f"Rename the one in {path.name}."
            )


_GIVEN = {"Any", *dir(builtins)}  # `grader.exercise.text_of` imports Any


def faults(exercise: Exercise) -> list[str]:
    """One sentence per fault: the field, what is wrong with it, and the values that it can have."""
    timed = [case.name for case in exercise.timed_cases]
    names = [case.name for case in (*exercise.cases, *exercise.simulator_cases)]
    baselines = [baseline.id for baseline in exercise.baselines]
    every = (*exercise.cases, *exercise.simulator_cases, *exercise.timed_cases, *exercise.plot_cases)
    found = [_twice(field, getattr(exercise, field)) for field in ("cases", "simulator_cases", "timed_cases")]
    for case in every if exercise.draw is None else ():
        found += [_unknown(f"the fill of {case.name!r}", fill, FILLS) for fill in case.fill.split("|")]
    for gate in exercise.gates:
        found.append(_unknown("the baseline of a gate", gate.baseline, baselines))
        found += [_unknown(f"a case of the gate against {gate.baseline!r}", name, timed) for name in gate.cases]
    for number, suspect in enumerate(exercise.suspects, 1):
        found += [_unknown(f"`spares` of suspect {number}", name, names) for name in suspect.spares]
        found += [_unknown(f"`breaks` of suspect {number}", name, names) for name in suspect.breaks]
    functions = {f"the baseline {each.id!r}": each.function for each in exercise.baselines}
    functions |= {f"the harness of {each.id!r}": each.harness for each in exercise.baselines if each.harness}
    functions |= {f"the {each}": own for each in ("harness", "measure") if (own := getattr(exercise, each)) is not None}
    found += [_dependent(what, function) for what, function in functions.items()]
    return list(dict.fromkeys(each for each in found if each))


def _unknown(where: str, name: str, known: Iterable[str]) -> str:
    known = list(dict.fromkeys(known))
    if name in known:
        return ""
    close = get_close_matches(name, known, 1)
    meant = f"did you mean {close[0]!r}?" if close else f"it can be one of: {', '.join(map(repr, known)) or 'none'}."
    return f"{where} is {name!r}, which does not exist: {meant}"


def _twice(field: str, cases: Iterable[Any]) -> str:
    counted = Counter(case.name for case in cases)
    return next((f"`{field}` has the name {name!r} twice." for name, count in counted.items() if count > 1), "")


def _dependent(what: str, function: Callable[..., Any]) -> str:
    """A fault if the function's text uses a name of its module: a worker gets nothing but this text."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        tree = ast.Pass()
    if not isinstance(tree, ast.FunctionDef):
        return f"{what} must be a plain function, written with `def` in the module."
    nodes = list(ast.walk(tree))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    bound |= {node.name for node in nodes if isinstance(node, (ast.ExceptHandler, ast.MatchAs)) and node.name}
    imports = [alias for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
    bound |= {(alias.asname or alias.name).partition(".")[0] for alias in imports}
    free = [node.id for node in nodes if isinstance(node, ast.Name) and node.id not in bound | _GIVEN]
    if not free:
        return ""
    return f"{what} uses {free[0]!r} of its module: a worker gets only the function's text, so define it inside."
