"""Follows the tensors through the function of a submission: does the library compute what ends up in the output?

Just what the function can come to is read: a comparison with torch in a test beside it is nobody's business.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from grader.exercise import Exercise
from grader.judge.rules import names as torch
from grader.judge.rules.names import Function, Names
from grader.judge.rules.notes import Note, written
from grader.judge.rules.values import COMPUTED, IN, OUT, SIZE, TENSORS, Place, Values, strongest

_PARTS = {"unbind", "chunk", "split", "tensor_split", "hsplit", "vsplit"}  # methods whose results are tensors
_MOST_CALLS = 24  # functions in functions


def follow(names: Names, exercise: Exercise) -> list[Note]:
    """What the exercise's function has others do for it.

    Raises:
        Unreadable: the source is too long to be followed.
    """
    reader = _Reader(names, exercise)
    outputs = {array.name for array in exercise.cases[0].outputs}
    roles = [OUT if name in outputs else IN for name in exercise.parameters]
    reader.top(exercise.entry, roles, {}, Place())
    named = {note.line for note in reader.notes if note.rule in ("library", "fallback")}  # these say it already
    return [note for note in reader.notes if note.rule != "writes" or note.line not in named]


class _Reader(Values):
    """Reads functions and statements."""

    def __init__(self, names: Names, exercise: Exercise) -> None:
        super().__init__(names, exercise)
        self._known: dict[tuple[object, ...], str] = {}
        self._seen: set[ast.AST] = set()

    def top(self, name: str, kinds: Sequence[str], keywords: dict[str, str], place: Place) -> str:
        around = Place(fallback=place.fallback, checking=place.checking, depth=place.depth + 1)
        found = self.names.top.get(name)
        match found:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if kinds or keywords or found not in self._seen:  # mentioned only: of its arguments nothing is known
                    self._seen.add(found)
                    return self.call(found, kinds, keywords, around)
            case ast.ClassDef() if found not in self._seen:
                self._seen.add(found)
                for method in found.body:
                    if isinstance(method, ast.FunctionDef):
                        self.call(method, (), {}, around)
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                if isinstance(value, ast.Lambda):
                    return self.call(value, kinds, keywords, around)
                if isinstance(value, ast.Name) and place.depth < _MOST_CALLS and not self.reference(value, around):
                    return self.top(value.id, kinds, keywords, around)
                if value not in self._seen:
                    self._seen.add(value)
                    self.value(value, around)
        return ""

    def call(self, function: Function, kinds: Sequence[str], keywords: dict[str, str], around: Place) -> str:
        key = (function, *kinds, *keywords.items(), around.fallback, around.checking)
        if key in self._known or around.depth >= _MOST_CALLS:
            return self._known.get(key, "")
        self._known[key] = ""  # while it calls itself
        self.step(len(around.kinds) // 16)  # they are copied
        arguments = function.args
        named = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        others = [*arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        known = dict.fromkeys((*named, *(argument.arg for argument in others if argument)), "")
        known |= dict(zip(named, kinds, strict=False))
        known |= {name: kind for name, kind in keywords.items() if name in known}
        kept = around.kinds | known, dict(around.functions)
        place = Place(*kept, [], around.fallback, around.checking, around.depth + 1)
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.value(default, around)
        if isinstance(function, ast.Lambda):
            return self._end(key, [self.value(function.body, place)])
        self._decorators(function, kinds, around)
        self._block(function.body, place)
        return self._end(key, place.returned)

    def _end(self, key: tuple[object, ...], returned: Sequence[str]) -> str:
        self._known[key] = strongest(returned)
        return self._known[key]

    def _decorators(self, function: ast.FunctionDef | ast.AsyncFunctionDef, kinds: Iterable[str], place: Place) -> None:
        for decorator in function.decorator_list:
            self.value(decorator, place)
            bare = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self.names.dotted(bare) in torch.CACHES and any(kind in TENSORS for kind in kinds):
                self.note("identity", decorator, written(decorator))

    def _block(self, body: Iterable[ast.stmt], place: Place) -> None:
        for statement in body:
            self._statement(statement, place)

    def _statement(self, node: ast.stmt, place: Place) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                kind = self.value(value, place)
                for target in targets:
                    self.bind(target, kind, value, place)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.value(value, place), value, place)
            case ast.AugAssign(target=target, value=value):
                self.value(value, place)
                if self._is(target, place) == OUT:
                    self.note("writes", node)
            case ast.Return(value=ast.expr() as value):
                place.returned.append(self.value(value, place))
            case ast.If(test=test, body=body, orelse=orelse):
                if _chooses([*body, *orelse]):
                    self.tuning |= set(ast.walk(test))
                self.value(test, place)
                self._block([*body, *orelse], place)
            case ast.For(target=target, iter=over, body=body, orelse=orelse):
                self.bind(target, self.value(over, place), over, place)
                self._block([*body, *orelse], place)
            case ast.With(items=items, body=body):
                for item in items:
                    kind = self.value(item.context_expr, place)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, kind, item.context_expr, place)
                self._block(body, place)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
                self._block(body, place)
                inner = Place(place.kinds, place.functions, place.returned, True, place.checking, place.depth)
                for handler in handlers:
                    self._block(handler.body, inner)
                self._block([*orelse, *finalbody], place)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                place.functions[node.name] = (node, place)
                place.kinds[node.name] = ""
                self.call(node, (), {}, place)
            case ast.Assert(test=test):
                inner = Place(place.kinds, place.functions, place.returned, place.fallback, True, place.depth)
                self.value(test, inner)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child, place)
                    elif isinstance(child, ast.stmt):
                        self._statement(child, place)
                    elif isinstance(child, ast.match_case):
                        self._block(child.body, place)

    def bind(self, target: ast.expr, kind: str, value: ast.expr, place: Place) -> None:
        match target:
            case ast.Name(id=name):
                place.kinds[name] = kind
                if isinstance(value, ast.Lambda):
                    place.functions[name] = (value, place)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                starred = any(isinstance(each, ast.Starred) for each in (*values, *targets))
                if len(values) == len(targets) and not starred:
                    for each, part in zip(targets, values, strict=True):
                        self.bind(each, self._is(part, place), part, place)
                else:
                    for each in targets:
                        self.bind(each, kind if kind == SIZE or _takes_apart(value) else "", value, place)
            case ast.Starred(value=inner):
                self.bind(inner, "", value, place)
            case ast.Subscript(value=holder) | ast.Attribute(value=holder):
                written = self.value(target, place) if isinstance(target, ast.Subscript) else self._is(holder, place)
                if kind == COMPUTED and written == OUT:
                    self.note("writes", value)
                if written not in TENSORS and kind == OUT and _copies(value):
                    self.note("answer", value)

    def _is(self, node: ast.expr, place: Place) -> str:
        """What an expression is, with nothing noted of it: it has been read, or is about to be."""
        noted = len(self.notes)
        kind = self.value(node, place)
        del self.notes[noted:]
        return kind


def _copies(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "clone"


def _chooses(body: Sequence[ast.stmt]) -> bool:
    """Whether these statements just give numbers to names: a choice of a block, or of warps."""
    return all(
        isinstance(each, ast.Pass)
        or (isinstance(each, ast.If) and _chooses([*each.body, *each.orelse]))
        or (isinstance(each, ast.Return) and each.value is not None and _plain(each.value))
        or (isinstance(each, ast.Assign) and all(map(_named, each.targets)) and _plain(each.value))
        for each in body
    )


def _plain(value: ast.expr) -> bool:
    return not any(isinstance(inner, ast.Call | ast.NamedExpr) for inner in ast.walk(value))


def _named(target: ast.expr) -> bool:
    return all(isinstance(each, ast.Name) for each in (target.elts if isinstance(target, ast.Tuple) else [target]))


def _takes_apart(value: ast.expr) -> bool:
    """Whether it is a call that gives several tensors of one."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _PARTS
