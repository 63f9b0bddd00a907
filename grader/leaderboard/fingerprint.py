"""A hash of an exercise: its data, and the code of every function that it refers to."""

from __future__ import annotations

import enum
import functools
import hashlib
import json
import random
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from grader.exercise import Exercise

_PACKAGE = Path(__file__).parents[1]
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented))
_ELSEWHERE = {"site-packages", "dist-packages"}
# Attributes that Python, `abc` and `dataclasses` add to a class, some in an order that differs between processes.
_GENERATED = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__annotations_cache__"),
    *("__annotate__", "__annotate_func__", "__firstlineno__", "__static_attributes__", "__abstractmethods__"),
    *("_abc_impl", "__repr__", "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__parameters__"),
    *("__orig_bases__", "__protocol_attrs__", "__non_callable_proto_members__"),
}
_OF_MODULES = {"__name__", "__file__", "__doc__", "__spec__", "__loader__", "__builtins__", "__cached__", "__package__"}


def fingerprint(exercise: Exercise) -> str:
    """The SHA-256 of all fields of an exercise, with the code of its functions and everything that they use.

    That includes helpers, values of modules, defaults, closures, classes, and modules imported in a function.

    It depends on the version of Python, but not on the package's path or the process. Docstrings change it, comments do
    not. Other packages count by name, because the machine's versions are compared elsewhere.

    Raises:
        TypeError: an exercise uses a value of an unknown type.
    """
    return hashlib.sha256(json.dumps(_Description().of(exercise)).encode()).hexdigest()


class _Description:
    """Describes values by lists and strings; each function, class and module only once."""

    def __init__(self) -> None:
        self._number: dict[Any, int] = {}  # of the described values, which it keeps alive

    def of(self, value: Any) -> Any:
        if isinstance(value, enum.Enum):
            return ["enum", _name(type(value)), value.name, self.of(value.value)]
        if isinstance(value, _PLAIN):
            return [type(value).__name__, repr(value)]
        if isinstance(value, slice):
            return ["slice", *map(self.of, (value.start, value.stop, value.step))]
        if isinstance(value, tuple | list):
            return [_name(type(value)), *map(self.of, value)]
        if isinstance(value, Mapping):
            return ["mapping", *([self.of(key), self.of(each)] for key, each in value.items())]
        if isinstance(value, set | frozenset):
            return ["set", *sorted(json.dumps(_Description().of(each)) for each in value)]
        if is_dataclass(value) and not isinstance(value, type):
            parts = {field.name: getattr(value, field.name) for field in fields(value)}
            return ["data", self.of(type(value)), *([name, self.of(each)] for name, each in parts.items())]
        if isinstance(value, random.SystemRandom):
            return ["random"]
        if isinstance(value, re.Pattern):
            return ["pattern", self.of(value.pattern), value.flags]
        if isinstance(value, types.CodeType):
            return self._code(value)
        if isinstance(value, functools.partial):
            return ["partial", self.of(value.func), self.of(value.args), self.of(value.keywords)]
        if isinstance(value, types.MethodType):
            return ["method", self.of(value.__func__), self.of(value.__self__)]
        if isinstance(value, staticmethod | classmethod):
            return [type(value).__name__, self.of(value.__func__)]
        if isinstance(value, property | functools.cached_property):
            return ["property", *(self.of(getattr(value, part, None)) for part in ("fget", "fset", "func"))]
        if isinstance(value, types.FunctionType | types.ModuleType | type):
            return self._once(value)
        return self._other(value)

    def _other(self, value: Any) -> Any:
        if hasattr(value, "__wrapped__"):  # as functools.cache leaves it
            return ["wrapped", _name(type(value)), self.of(value.__wrapped__)]
        if hasattr(value, "__qualname__") or _is_of_typing(value):  # a function in C, a type alias
            return ["named", repr(value) if _is_of_typing(value) else _name(value)]
        if _is_ours(type(value).__module__) and hasattr(value, "__dict__"):
            return ["object", self.of(type(value)), self.of(vars(value))]
        raise TypeError(
            f"An exercise uses a {_name(type(value))}, which {__name__} cannot describe: add a description there, "
            "or create the value in the function that uses it."
        )

    def _once(self, value: Any) -> Any:
        if value in self._number:
            return ["as", self._number[value]]
        self._number[value] = len(self._number)
        if isinstance(value, str):  # the name of a module that only workers may load
            return self._module(value)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        return self._module(value.__name__)

    def _function(self, function: types.FunctionType) -> Any:
        if _is_elsewhere(function):
            return ["named", _name(function)]
        cells = [self.of(content) for content in _contents(function.__closure__ or ())]
        defaults = [self.of(function.__defaults__), self.of(function.__kwdefaults__)]
        parts = [*defaults, cells, self._globals(function), self.of(vars(function))]
        return ["function", self._code(function.__code__), *parts]

    def _globals(self, function: types.FunctionType) -> list[Any]:
        """The globals whose names the function or one inside it uses."""
        found = function.__globals__
        names = sorted({name for code in _codes(function.__code__) for name in code.co_names if name in found})
        return [[name, self._used(found[name], function.__code__)] for name in names if name not in _OF_MODULES]

    def _used(self, value: Any, by: types.CodeType) -> Any:
        if not isinstance(value, types.ModuleType) or not _is_ours(value.__name__):
            return self.of(value)
        names = sorted({name for code in _codes(by) for name in code.co_names if name in vars(value)})
        return ["of", value.__name__, *([name, self._used(vars(value)[name], by)] for name in names)]

    def _class(self, value: type) -> Any:
        if not _is_ours(value.__module__):
            return ["named", _name(value)]
        if issubclass(value, enum.Enum):
            return ["class", _name(value), [self.of(each) for each in value]]
        own = vars(value)
        parts = [[name, self.of(own[name])] for name in sorted(own) if not _is_generated(name, own[name])]
        return ["class", _name(value), [self.of(base) for base in value.__bases__], parts]

    def _code(self, code: types.CodeType) -> Any:
        """A code object without its path, with our modules that it imports."""
        imported = [self._once(name) for name in sorted(_imports(code))]
        return [
            "code",
            [code.co_code.hex(), code.co_exceptiontable.hex(), code.co_flags],
            [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount],
            [list(code.co_names), list(code.co_varnames), list(code.co_freevars), list(code.co_cellvars)],
            [self.of(constant) for constant in code.co_consts],
            imported,
        ]

    def _module(self, name: str) -> Any:
        """A module by its text, because modules that only workers import cannot be loaded here."""
        file = _file_of(name)
        if file is None:
            return ["named", name]
        return ["module", name, self._code(compile(file.read_bytes(), name, "exec", dont_inherit=True))]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def _is_ours(module: str) -> bool:
    root = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    here = root not in sys.stdlib_module_names and root != "builtins" and not _ELSEWHERE.intersection(Path(file).parts)
    return root == "grader" or here


def _is_elsewhere(function: types.FunctionType) -> bool:
    if function.__module__ and function.__module__.partition(".")[0] == "grader":
        return False
    return not _is_ours(function.__module__ or "") or bool(
        _ELSEWHERE.intersection(Path(function.__code__.co_filename).parts)
    )


def _is_of_typing(value: Any) -> bool:
    return type(value).__module__ in ("typing", "types", "collections.abc")


def _is_generated(name: str, value: Any) -> bool:
    code = getattr(value, "__code__", None)
    by_dataclass = code is not None and name.startswith("__") and code.co_filename == "<string>"
    slot = isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)
    return name in _GENERATED or by_dataclass or slot


def _contents(cells: tuple[types.CellType, ...]) -> Iterator[Any]:
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # an empty cell
            yield NotImplemented


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all code objects inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _imports(code: types.CodeType) -> set[str]:
    """The modules of `grader` that a code object imports itself."""
    found = {name for name in code.co_names if name.startswith("grader.") and _file_of(name)}
    return found | {f"{name}.{part}" for name in found for part in code.co_names if _file_of(f"{name}.{part}")}


@functools.cache
def _file_of(module: str) -> Path | None:
    root, *parts = module.split(".")
    if root != "grader" or not all(part.isidentifier() for part in parts):
        return None
    path = _PACKAGE.joinpath(*parts)
    files = (path.with_suffix(".py"), path / "__init__.py") if parts else (path / "__init__.py",)
    return next((file for file in files if file.is_file()), None)
