"""Follows tensors through a submission's function: does the library compute what ends up in the output?

Only code that the function may reach is read, so a test that compares with torch is not noted. A value whose kind is
unknown is not noted either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from grader.exercise import Exercise
from grader.judge.rules import names as torch
from grader.judge.rules.names import Function, Names, number
from grader.judge.rules.notes import Note, shown, written

# Kinds of values: tensors (an input, an output, newly created, or computed by the library), a tensor's size, and its
# identity (`data_ptr()`, `id`). "" is any other value.
_IN, _OUT, _OWN, _COMPUTED, _SIZE, _IDENTITY = "input", "output", "own", "computed", "size", "identity"
_TENSORS = (_COMPUTED, _IN, _OUT, _OWN)
_MOST_STEPS = 200_000
_LARGE = 1 << 20  # too large for a block size
_SMALL = 64
_PARTS = {"unbind", "chunk", "split", "tensor_split", "hsplit", "vsplit"}  # methods whose results are tensors
_MOST_CALLS = 24  # nested


class Unreadable(Exception):
    """The source takes more steps to follow than any solution does."""


@dataclass(frozen=True)
class _Place:
    """The scope and context of a statement or expression."""

    kinds: dict[str, str] = field(default_factory=dict)
    functions: dict[str, tuple[Function, _Place]] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)
    fallback: bool = False  # in an `except`
    checking: bool = False  # in an assertion
    depth: int = 0


def follow(names: Names, exercise: Exercise) -> list[Note]:
    """Note the work that the exercise's function leaves to the library. Raises Unreadable."""
    reader = _Reader(names, exercise)
    outputs = {array.name for array in exercise.cases[0].outputs}
    roles = [_OUT if name in outputs else _IN for name in exercise.parameters]
    reader.top(exercise.entry, roles, {}, _Place())
    named = {note.line for note in reader.notes if note.rule in ("library", "fallback")}  # these notes already cover it
    return [note for note in reader.notes if note.rule != "writes" or note.line not in named]


class _Reader:
    """Evaluates expressions and statements to kinds of values; the findings collect in `notes`."""

    def __init__(self, names: Names, exercise: Exercise) -> None:
        self.names = names
        self.library = frozenset(exercise.rules.library)
        self.notes: list[Note] = []
        self._tuning: set[ast.AST] = set()  # comparisons that only choose a number
        self._steps = 0
        self._known: dict[tuple[object, ...], str] = {}
        self._seen: set[ast.AST] = set()

    def note(self, rule: str, node: ast.AST, subject: str = "") -> None:
        """Add a note on `node`; the default subject is its source text."""
        self.notes.append(Note(rule, getattr(node, "lineno", None), subject or written(node)))

    def _step(self, cost: int = 1) -> None:
        """Count the work done. Raises Unreadable."""
        self._steps += cost
        if self._steps > _MOST_STEPS:
            raise Unreadable

    def value(self, node: ast.expr, place: _Place) -> str:
        """The kind of an expression; notes what it does."""
        self._step()
        match node:
            case ast.Name(id=name) if name in place.kinds:
                return place.kinds[name]
            case ast.Name(id=name):
                if not self.reference(node, place) and name in self.names.top and name not in self.names.imports:
                    self.top(name, (), {}, place)
                return ""
            case ast.Attribute(value=value, attr=attribute):
                return "" if self.reference(node, place) else self._attribute(self.value(value, place), attribute)
            case ast.Call():
                return self._called(node, place)
            case ast.Subscript(value=value, slice=key):
                kind = self.value(value, place)
                if self.value(key, place) == _IDENTITY and kind not in _TENSORS:
                    self.note("identity", node)
                return kind if kind in (*_TENSORS, _SIZE) else ""
            case ast.BinOp(left=left, op=op, right=right):
                kinds = [self.value(left, place), self.value(right, place)]
                if any(kind in _TENSORS for kind in kinds):
                    return _COMPUTED
                return _SIZE if _SIZE in kinds and isinstance(op, ast.Mult) else ""
            case ast.UnaryOp(operand=operand):
                return _COMPUTED if self.value(operand, place) in _TENSORS else ""
            case ast.Compare():
                return self._compare(node, place)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                if isinstance(body, ast.Constant) and isinstance(orelse, ast.Constant | ast.IfExp):
                    self._tuning |= set(ast.walk(test))
                self.value(test, place)
                return _strongest([self.value(body, place), self.value(orelse, place)])
            case ast.NamedExpr(target=target, value=value):
                place.kinds[target.id] = self.value(value, place)
                return place.kinds[target.id]
            case ast.Lambda():
                return self.call(node, (), {}, place)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, place)
            case _:  # tuples, dictionaries, strings, `and`, `or`
                parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
                kinds = [self.value(part, place) for part in parts]
                if isinstance(node, ast.Dict) and _IDENTITY in kinds[: len(node.keys)]:
                    self.note("identity", node)
                return "" if isinstance(node, ast.Dict) else _strongest(kinds)

    def reference(self, node: ast.expr, place: _Place) -> bool:
        """Whether this is a forbidden library function, called or passed on; notes it."""
        name = torch.canonical(self.names.dotted(node))
        if name in torch.COMPILERS:
            self.note("compiler", node, shown(name))
        elif not name or torch.operation(name) not in self.library:
            return False
        elif not place.checking:
            self.note("fallback" if place.fallback else "library", node, shown(name))
        return True

    def _attribute(self, kind: str, attribute: str) -> str:
        if kind not in _TENSORS:
            return ""
        known = {"_version": _IDENTITY} | dict.fromkeys(torch.SIZES, _SIZE)
        return known.get(attribute, kind if attribute in torch.VIEWS else "")

    def _comprehension(self, node: ast.expr, place: _Place) -> str:
        self._step(len(place.kinds) // 16)  # they are copied
        inner = replace(place, kinds=dict(place.kinds), returned=[])
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                self.bind(child.target, self.value(child.iter, inner), child.iter, inner)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, inner)
        return ""

    def _compare(self, node: ast.Compare, place: _Place) -> str:
        sides = [node.left, *node.comparators]
        kinds = [self.value(side, place) for side in sides]
        for index, op in enumerate(node.ops):
            pair, ends = kinds[index : index + 2], sides[index : index + 2]
            equal, among = isinstance(op, ast.Eq | ast.NotEq), isinstance(op, ast.In | ast.NotIn)
            other = ends[1] if pair[0] in (_IDENTITY, _SIZE) else ends[0]
            if (equal and pair.count(_IDENTITY) == 1 and not isinstance(other, ast.Constant)) or (
                among and pair[0] == _IDENTITY
            ):
                self.note("identity", node)
            elif (equal or among) and _SIZE in pair and node not in self._tuning and _special(other):
                self.note("size", node)
        return ""

    def _called(self, node: ast.Call, place: _Place) -> str:
        dotted = self.names.dotted(node.func)
        name = torch.canonical(dotted)
        checking = place.checking or dotted.rpartition(".")[2] in torch.CHECKS
        inner = replace(place, checking=checking)
        kinds = [self.value(argument, inner) for argument in node.args]
        keywords = {keyword.arg or "": self.value(keyword.value, inner) for keyword in node.keywords}
        tensors = any(kind in _TENSORS for kind in (*kinds, *keywords.values()))
        if dotted in torch.OF_SIZES:
            return _SIZE if tensors or _SIZE in kinds else ""
        if name:
            return self._of_torch(node, name, kinds, keywords, inner)
        if dotted in ("builtins.id", "builtins.hash"):
            return _IDENTITY if tensors else ""
        if dotted.startswith("operator."):
            return _COMPUTED if tensors else ""
        if dotted in torch.CONTAINERS:
            return _IDENTITY if _IDENTITY in kinds else ""
        match node.func:
            case ast.Name(id=called) if called in place.functions:
                function, around = place.functions[called]
                inside = replace(inner, kinds=around.kinds, functions=around.functions, returned=[])
                return self.call(function, kinds, keywords, inside)
            case ast.Name(id=called) if called not in place.kinds and called in self.names.top:
                return self.top(called, kinds, keywords, inner)
            case ast.Attribute(value=receiver, attr=method):
                return self._method(node, self.value(receiver, inner), method, kinds, inner)
        self.value(node.func, inner)
        return ""

    def _of_torch(self, node: ast.Call, name: str, kinds: list[str], keywords: dict[str, str], place: _Place) -> str:
        operation, everything = torch.operation(name), [*kinds, *keywords.values()]
        if operation in self.library and _OWN in everything and not {_IN, _OUT, _COMPUTED} & set(everything):
            return _OWN  # on a tensor that the submission created itself
        if self.reference(node.func, place):
            return _COMPUTED
        if operation in torch.CREATES:
            return _OWN
        if operation in torch.VIEWS:
            return _strongest(kinds)
        if keywords.get("out") == _OUT or (name.endswith("_") and kinds[:2] == [_OUT, _COMPUTED]):
            self.note("writes", node)
        return _COMPUTED if any(kind in _TENSORS for kind in everything) else ""

    def _method(self, node: ast.Call, kind: str, method: str, kinds: list[str], place: _Place) -> str:
        operation = torch.operation(method)
        if method == "data_ptr":
            return _IDENTITY
        if kind not in _TENSORS:
            if method in torch.LOOKUPS and kinds[:1] == [_IDENTITY]:
                self.note("identity", node)
            return ""
        if operation in self.library and (kind != _OWN or any(each in (_IN, _COMPUTED) for each in kinds)):
            if not place.checking:
                self.note("fallback" if place.fallback else "library", node.func)
            return _COMPUTED
        if method in torch.SIZES:
            return _SIZE
        if method in torch.FACTS:
            return ""
        if operation in torch.CREATES:
            return _OWN
        if method in ("copy_", "set_", "__setitem__"):
            if kind == _OUT and _COMPUTED in kinds:
                self.note("writes", node)
            if kind == _OWN and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                place.kinds[node.func.value.id] = _strongest(kinds) if kinds[:1] != [_OUT] else kind
            return kind
        if operation in torch.VIEWS or method in torch.FILLS:
            return kind
        if method.endswith("_") and not method.endswith("__") and kind == _OUT:
            self.note("writes", node)
        return _COMPUTED

    def top(self, name: str, kinds: Sequence[str], keywords: dict[str, str], place: _Place) -> str:
        around = _Place(fallback=place.fallback, checking=place.checking, depth=place.depth + 1)
        found = self.names.top.get(name)
        match found:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if kinds or keywords or found not in self._seen:  # mentioned only: its arguments are unknown
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

    def call(self, function: Function, kinds: Sequence[str], keywords: dict[str, str], around: _Place) -> str:
        key = (function, *kinds, *keywords.items(), around.fallback, around.checking)
        if key in self._known or around.depth >= _MOST_CALLS:
            return self._known.get(key, "")
        self._known[key] = ""  # for recursive calls
        self._step(len(around.kinds) // 16)  # they are copied
        arguments = function.args
        named = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        others = [*arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        known = dict.fromkeys((*named, *(argument.arg for argument in others if argument)), "")
        known |= dict(zip(named, kinds, strict=False))
        known |= {name: kind for name, kind in keywords.items() if name in known}
        kept = around.kinds | known, dict(around.functions)
        place = _Place(*kept, [], around.fallback, around.checking, around.depth + 1)
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.value(default, around)
        if isinstance(function, ast.Lambda):
            return self._end(key, [self.value(function.body, place)])
        self._decorators(function.decorator_list, kinds, around)
        self._block(function.body, place)
        return self._end(key, place.returned)

    def _end(self, key: tuple[object, ...], returned: Sequence[str]) -> str:
        self._known[key] = _strongest(returned)
        return self._known[key]

    def _decorators(self, decorators: Iterable[ast.expr], kinds: Iterable[str], place: _Place) -> None:
        for decorator in decorators:
            self.value(decorator, place)
            bare = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self.names.dotted(bare) in torch.CACHES and any(kind in _TENSORS for kind in kinds):
                self.note("identity", decorator, written(decorator))

    def _block(self, body: Iterable[ast.stmt], place: _Place) -> None:
        for statement in body:
            self._statement(statement, place)

    def _statement(self, node: ast.stmt, place: _Place) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                kind = self.value(value, place)
                for target in targets:
                    self.bind(target, kind, value, place)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.value(value, place), value, place)
            case ast.AugAssign(target=target, value=value):
                self.value(value, place)
                if self._is(target, place) == _OUT:
                    self.note("writes", node)
            case ast.Return(value=ast.expr() as value):
                place.returned.append(self.value(value, place))
            case ast.If(test=test, body=body, orelse=orelse):
                if _chooses([*body, *orelse]):
                    self._tuning |= set(ast.walk(test))
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
                inner = replace(place, fallback=True)
                for handler in handlers:
                    self._block(handler.body, inner)
                self._block([*orelse, *finalbody], place)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                place.functions[node.name] = (node, place)
                place.kinds[node.name] = ""
                self.call(node, (), {}, place)
            case ast.Assert(test=test):
                self.value(test, replace(place, checking=True))
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child, place)
                    elif isinstance(child, ast.stmt):
                        self._statement(child, place)
                    elif isinstance(child, ast.match_case):
                        self._block(child.body, place)

    def bind(self, target: ast.expr, kind: str, value: ast.expr, place: _Place) -> None:
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
                        self.bind(each, kind if kind == _SIZE or _called_method(value) in _PARTS else "", value, place)
            case ast.Starred(value=inner):
                self.bind(inner, "", value, place)
            case ast.Subscript(value=holder) | ast.Attribute(value=holder):
                written = self.value(target, place) if isinstance(target, ast.Subscript) else self._is(holder, place)
                if kind == _COMPUTED and written == _OUT:
                    self.note("writes", value)
                if written not in _TENSORS and kind == _OUT and _called_method(value) == "clone":
                    self.note("answer", value)

    def _is(self, node: ast.expr, place: _Place) -> str:
        """The kind of an expression, without notes: they are made elsewhere."""
        noted = len(self.notes)
        kind = self.value(node, place)
        del self.notes[noted:]
        return kind


def _strongest(kinds: Sequence[str]) -> str:
    """The kind of a value with parts of these kinds."""
    return next((kind for kind in (*_TENSORS, _IDENTITY, _SIZE) if kind in kinds), "")


def _special(node: ast.expr) -> bool:
    """Whether this looks like one problem's size (781, 4096 × 4096) and not like a block size."""
    elements = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [value for value in map(number, elements) if value is not None]
    if isinstance(node, ast.Tuple | ast.List) and len(values) > 1 and max(values) > _SMALL:
        return True
    return any(value > _SMALL and (value >= _LARGE or value & (value - 1) != 0) for value in values)


def _chooses(body: Sequence[ast.stmt]) -> bool:
    """Whether these statements only assign constants, such as a block size or a number of warps."""
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


def _called_method(value: ast.expr) -> str:
    """The name of the method that an expression calls, or ""."""
    return value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
