"""What the values in a submission are, as far as its text tells: inputs, outputs, tensors that the library computed.

Generous where it is in doubt: of most values it knows nothing, and says nothing then.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.exercise import Exercise
from grader.judge.rules import names as torch
from grader.judge.rules.names import Function, Names, number
from grader.judge.rules.notes import Note, shown, written

# A tensor: an input, an output, one of its own, or one that the library computed. Else: the size of one, what tells
# one from another (`data_ptr()`, `id`), or "", not known.
IN, OUT, OWN, COMPUTED, SIZE, IDENTITY = "input", "output", "own", "computed", "size", "identity"
TENSORS = (COMPUTED, IN, OUT, OWN)
_MOST_STEPS = 200_000
_LARGE = 1 << 20  # nobody's block, nobody's limit
_SMALL = 64


class Unreadable(Exception):
    """The source takes more steps than a solution does."""


@dataclass(frozen=True)
class Place:
    """Where the reading is: what the names are, and around what it stands."""

    kinds: dict[str, str] = field(default_factory=dict)
    functions: dict[str, tuple[Function, Place]] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)
    fallback: bool = False  # in an `except`
    checking: bool = False  # in an assertion
    depth: int = 0


class Values(ABC):
    """Reads expressions; the notes gather in `notes`."""

    def __init__(self, names: Names, exercise: Exercise) -> None:
        self.names, self.exercise = names, exercise
        self.library = frozenset(exercise.rules.library)
        self.notes: list[Note] = []
        self.tuning: set[ast.AST] = set()  # comparisons that only choose a number
        self._steps = 0

    @abstractmethod
    def call(self, function: Function, kinds: Sequence[str], keywords: dict[str, str], around: Place) -> str:
        """What a call of this function returns."""

    @abstractmethod
    def top(self, name: str, kinds: Sequence[str], keywords: dict[str, str], place: Place) -> str:
        """What a call of this name, bound at the top of the module, returns."""

    @abstractmethod
    def bind(self, target: ast.expr, kind: str, value: ast.expr, place: Place) -> None:
        """Gives a target its value."""

    def note(self, rule: str, node: ast.AST, subject: str = "") -> None:
        """Notes what `node` does; without a subject its own text is shown."""
        self.notes.append(Note(rule, getattr(node, "lineno", None), subject or written(node)))

    def step(self, cost: int = 1) -> None:
        """Counts what the reading costs.

        Raises:
            Unreadable: more than a solution does.
        """
        self._steps += cost
        if self._steps > _MOST_STEPS:
            raise Unreadable

    def value(self, node: ast.expr, place: Place) -> str:
        """What an expression is."""
        self.step()
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
                if self.value(key, place) == IDENTITY and kind not in TENSORS:
                    self.note("identity", node)
                return kind if kind in (*TENSORS, SIZE) else ""
            case ast.BinOp(left=left, op=op, right=right):
                kinds = [self.value(left, place), self.value(right, place)]
                if any(kind in TENSORS for kind in kinds):
                    return COMPUTED
                return SIZE if SIZE in kinds and isinstance(op, ast.Mult) else ""
            case ast.UnaryOp(operand=operand):
                return COMPUTED if self.value(operand, place) in TENSORS else ""
            case ast.Compare():
                return self._compare(node, place)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                if isinstance(body, ast.Constant) and isinstance(orelse, ast.Constant | ast.IfExp):
                    self.tuning |= set(ast.walk(test))
                self.value(test, place)
                return strongest([self.value(body, place), self.value(orelse, place)])
            case ast.NamedExpr(target=target, value=value):
                place.kinds[target.id] = self.value(value, place)
                return place.kinds[target.id]
            case ast.Lambda():
                return self.call(node, (), {}, place)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, place)
            case _:  # tuples, dictionaries, texts, `and`, `or`: what their strongest part is
                parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
                kinds = [self.value(part, place) for part in parts]
                if isinstance(node, ast.Dict) and IDENTITY in kinds[: len(node.keys)]:
                    self.note("identity", node)
                return "" if isinstance(node, ast.Dict) else strongest(kinds)

    def reference(self, node: ast.expr, place: Place) -> bool:
        """Notes a function of the library, whether it is called here or handed on, and says whether it is one."""
        name = torch.canonical(self.names.dotted(node))
        if name in torch.COMPILERS:
            self.note("compiler", node, shown(name))
        elif not name or torch.operation(name) not in self.library:
            return False
        elif not place.checking:
            self.note("fallback" if place.fallback else "library", node, shown(name))
        return True

    def _attribute(self, kind: str, attribute: str) -> str:
        if kind not in TENSORS:
            return ""
        known = {"_version": IDENTITY} | dict.fromkeys(torch.SIZES, SIZE)
        return known.get(attribute, kind if attribute in torch.VIEWS else "")

    def _comprehension(self, node: ast.expr, place: Place) -> str:
        self.step(len(place.kinds) // 16)  # they are copied
        inner = Place(dict(place.kinds), place.functions, [], place.fallback, place.checking, place.depth)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                self.bind(child.target, self.value(child.iter, inner), child.iter, inner)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, inner)
        return ""

    def _compare(self, node: ast.Compare, place: Place) -> str:
        sides = [node.left, *node.comparators]
        kinds = [self.value(side, place) for side in sides]
        for index, op in enumerate(node.ops):
            pair, ends = kinds[index : index + 2], sides[index : index + 2]
            equal, among = isinstance(op, ast.Eq | ast.NotEq), isinstance(op, ast.In | ast.NotIn)
            other = ends[1] if pair[0] in (IDENTITY, SIZE) else ends[0]
            if (equal and pair.count(IDENTITY) == 1 and not isinstance(other, ast.Constant)) or (
                among and pair[0] == IDENTITY
            ):
                self.note("identity", node)
            elif (equal or among) and SIZE in pair and node not in self.tuning and _special(other):
                self.note("size", node)
        return ""

    def _called(self, node: ast.Call, place: Place) -> str:
        dotted = self.names.dotted(node.func)
        name = torch.canonical(dotted)
        checking = place.checking or dotted.rpartition(".")[2] in torch.CHECKS
        inner = Place(place.kinds, place.functions, place.returned, place.fallback, checking, place.depth)
        kinds = [self.value(argument, inner) for argument in node.args]
        keywords = {keyword.arg or "": self.value(keyword.value, inner) for keyword in node.keywords}
        tensors = any(kind in TENSORS for kind in (*kinds, *keywords.values()))
        if dotted in torch.OF_SIZES:
            return SIZE if tensors or SIZE in kinds else ""
        if name:
            return self._of_torch(node, name, kinds, keywords, inner)
        if dotted in ("builtins.id", "builtins.hash"):
            return IDENTITY if tensors else ""
        if dotted.startswith("operator."):
            return COMPUTED if tensors else ""
        if dotted in torch.CONTAINERS:
            return IDENTITY if IDENTITY in kinds else ""
        match node.func:
            case ast.Name(id=called) if called in place.functions:
                function, around = place.functions[called]
                inside = Place(around.kinds, around.functions, [], place.fallback, checking, place.depth)
                return self.call(function, kinds, keywords, inside)
            case ast.Name(id=called) if called not in place.kinds and called in self.names.top:
                return self.top(called, kinds, keywords, inner)
            case ast.Attribute(value=receiver, attr=method):
                return self._method(node, self.value(receiver, inner), method, kinds, inner)
        self.value(node.func, inner)
        return ""

    def _of_torch(self, node: ast.Call, name: str, kinds: list[str], keywords: dict[str, str], place: Place) -> str:
        operation, everything = torch.operation(name), [*kinds, *keywords.values()]
        if operation in self.library and OWN in everything and not {IN, OUT, COMPUTED} & set(everything):
            return OWN  # a little sum of its own
        if self.reference(node.func, place):
            return COMPUTED
        if operation in torch.CREATES:
            return OWN
        if operation in torch.VIEWS:
            return strongest(kinds)
        if keywords.get("out") == OUT or (name.endswith("_") and kinds[:2] == [OUT, COMPUTED]):
            self.note("writes", node)
        return COMPUTED if any(kind in TENSORS for kind in everything) else ""

    def _method(self, node: ast.Call, kind: str, method: str, kinds: list[str], place: Place) -> str:
        operation = torch.operation(method)
        if method == "data_ptr":
            return IDENTITY
        if kind not in TENSORS:
            if method in torch.LOOKUPS and kinds[:1] == [IDENTITY]:
                self.note("identity", node)
            return ""
        if operation in self.library and (kind != OWN or any(each in (IN, COMPUTED) for each in kinds)):
            if not place.checking:
                self.note("fallback" if place.fallback else "library", node.func)
            return COMPUTED
        if method in torch.SIZES:
            return SIZE
        if method in torch.FACTS:
            return ""
        if operation in torch.CREATES:
            return OWN
        if method in ("copy_", "set_", "__setitem__"):
            if kind == OUT and COMPUTED in kinds:
                self.note("writes", node)
            if kind == OWN and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                place.kinds[node.func.value.id] = strongest(kinds) if kinds[:1] != [OUT] else kind
            return kind
        if operation in torch.VIEWS or method in torch.FILLS:
            return kind
        if method.endswith("_") and not method.endswith("__") and kind == OUT:
            self.note("writes", node)
        return COMPUTED


def strongest(kinds: Sequence[str]) -> str:
    """The kind that counts of a value that has parts."""
    return next((kind for kind in (*TENSORS, IDENTITY, SIZE) if kind in kinds), "")


def _special(node: ast.expr) -> bool:
    """Whether this is a size that one particular problem has: 781, 4096 × 4096, but not the width of a block."""
    elements = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [value for value in map(number, elements) if value is not None]
    if isinstance(node, ast.Tuple | ast.List) and len(values) > 1 and max(values) > _SMALL:
        return True
    return any(value > _SMALL and (value >= _LARGE or value & (value - 1) != 0) for value in values)
