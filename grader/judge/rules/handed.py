"""Follows a function or object that an exercise passes to a submission, and notes every use that inspects it.

A submission may call it, store it, and pass it to its own functions, which are followed, and to known timers. It may
use an object's public methods. Any other use is noted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from grader.exercise import Exercise
from grader.judge.rules.flow import Unreadable
from grader.judge.rules.names import Names, text, words
from grader.judge.rules.notes import Note, shown, written

_TIMERS = words(
    """torch.utils.benchmark.Timer timeit.Timer timeit.timeit timeit.repeat timeit.default_timer
    triton.testing.do_bench triton.testing.do_bench_cudagraph torch.utils.benchmark.utils.timer.Timer"""
)
_HARMLESS = words("callable isinstance print list tuple iter enumerate zip reversed next bool id len")
_HARMLESS_CALLS = {f"builtins.{name}" for name in _HARMLESS} | {"itertools.repeat"}
_KEEPS = words("append add insert extend setdefault update put")  # methods of a container
_GIVES = words("pop popleft get values items __getitem__")
_CARRY = words("list tuple iter enumerate zip reversed next set")
_TOOLS = re.compile(  # noted whatever they are applied to
    r"""(inspect|dis|types|pickle|marshal|copyreg|cloudpickle|dill|ctypes|tracemalloc|traceback|code|pdb|bdb|symtable
        |weakref|unittest)(?<!types\.SimpleNamespace)\..+
    | gc\.(?!collect$|disable$|enable$|freeze$).+ | operator\.(attrgetter|methodcaller)
    | sys\.(exc_info|last_\w+|_\w+|modules|settrace|setprofile|gettrace|monitoring.*)
    | threading\.(settrace|setprofile)\w*
    | builtins\.(vars|dir|globals|locals|__builtins__|__loader__|__spec__|delattr|memoryview)
    | (copy|importlib|runpy|pkgutil)\..+""",
    re.VERBOSE,
)
_BARE = {"builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.type", "builtins.object"}
_DUNDER = re.compile(r"__\w+__")
_ORDINARY = words("__init__ __name__ __doc__ __version__ __call__ __enter__ __exit__ __main__ __file__ __getattr__")
_STATEMENT = re.compile(r"[\s\w(),;=]*")  # what a timer may run as text: calls of plain names
_CONTAINERS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.BoolOp, ast.BinOp, ast.NamedExpr)
_USES = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Yield, ast.Expr, ast.Assert, ast.Compare, ast.For),
    *(ast.comprehension, ast.withitem, ast.UnaryOp, ast.If, ast.While, ast.Lambda, ast.arguments, ast.Subscript),
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.IfExp, ast.FormattedValue),
)
_MOST_ROUNDS = 24
_MOST_STEPS = 1_000_000


def taken_apart(names: Names, exercise: Exercise) -> Iterator[Note]:
    """Note every use of the exercise's functions and objects other than a call. Raises Unreadable."""
    methods = set(exercise.rules.methods)
    functions = set(exercise.rules.handed) - methods
    if not methods | functions:
        return
    function = _Handed(names, exercise, functions)
    yield from function.notes()
    yield from function.tools()
    if methods:
        yield from _Handed(names, exercise, methods, has_methods=True, also_called=function.held).notes()


class _Handed:
    """Follows some parameters through names and attributes; scopes are ignored."""

    def __init__(
        self, names: Names, exercise: Exercise, parameters: Collection[str], has_methods: bool = False,
        also_called: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.names, self.exercise, self.has_methods = names, exercise, has_methods
        self.also_called = also_called  # other functions from the exercise, which may receive this
        self.nodes = list(ast.walk(names.module))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]] = {}
        self.own: set[str] = set()  # attributes that the submission itself defines
        self.held: set[str] = set()  # names and attributes that hold it
        self.giving: set[str] = set()  # functions that return it
        for node in self.nodes:
            self._define(node)
        self.alone = self._named_alone()
        self._steps = 0
        self._start(parameters)
        for _ in range(_MOST_ROUNDS):
            before = len(self.held) + len(self.giving)
            for node in self.nodes:
                self._spread(node)
            if len(self.held) + len(self.giving) == before:
                break
        else:
            raise Unreadable

    def _define(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.functions.setdefault(name, []).append(node)
            case ast.ClassDef(name=name, body=body):
                made = [each for each in body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
                self.functions.setdefault(name, []).extend(made)
                self.own |= {each.id for line in body for each in ast.walk(line) if isinstance(each, ast.Name)}
                self.own |= {each.name for each in body if isinstance(each, ast.FunctionDef)}
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
                self.functions.setdefault(name, []).append(function)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                self.own.add(name)

    def _named_alone(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
        """Functions that are mentioned somewhere without a call."""
        alone = {
            node.id
            for node in self.nodes
            if isinstance(node, ast.Name) and node.id in self.functions
            if not isinstance(parent := self.parents.get(node), ast.Call) or parent.func is not node
        }
        return [function for name in sorted(alone) for function in self.functions[name]]

    def _start(self, handed: Collection[str]) -> None:
        entry = self.exercise.entry
        for _ in range(_MOST_ROUNDS):  # `time_gpu = other`
            bound = self.names.top.get(entry)
            value = bound.value if isinstance(bound, ast.Assign) else None
            if isinstance(value, ast.Call):  # an object, or what a function makes
                entry = "__call__"
            if not isinstance(value, ast.Name):
                break
            entry = value.id
        for function in self.functions.get(entry, []):
            parameters = _parameters(function)
            for place, name in enumerate(self.exercise.parameters):
                if name in handed and place < len(parameters):
                    self.held.add(parameters[place])
            self.held |= {each.arg for each in (function.args.vararg, function.args.kwarg) if each}

    def _spread(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value) if self._carries(value):
                for target in targets:
                    self._into(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ) if self._carries(value):
                self._into(target, value)
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value) if self._carries(value):
                around = self.parents.get(node)
                while around is not None and not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
                    around = self.parents.get(around)
                if around is not None:
                    self.giving.add(around.name)
            case ast.arguments():
                for argument, default in zip(node.args[::-1], node.defaults[::-1], strict=False):
                    if self._carries(default):
                        self.held.add(argument.arg)
            case ast.Call():
                self._pass_on(node)

    def _into(self, target: ast.expr, value: ast.expr) -> None:
        """Bind the target; a tuple of names is matched with a tuple of values if both have the same length."""
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        if len(parts) == len(names) and names and not any(isinstance(each, ast.Starred) for each in (*parts, *names)):
            for name, part in zip(names, parts, strict=True):
                if self._carries(part):
                    self._into(name, part)
        else:
            self.held |= set(_targets(target))

    def _pass_on(self, node: ast.Call) -> None:
        args, called = node.args, node.func
        if self.names.dotted(called) == "functools.partial" and args:
            called, args = args[0], args[1:]
        if isinstance(called, ast.Attribute) and called.attr in _KEEPS and any(map(self._carries, args)):
            self.held |= set(_targets(called.value))
        functions = self._called(called, len(args))
        for place, value in enumerate(args):
            if self._carries(value):
                for function in functions:
                    self.held |= set(_parameters(function)[place : place + 1])
                    self.held |= {each.arg for each in (function.args.vararg,) if each}
        for keyword in node.keywords:
            if self._carries(keyword.value) and functions:
                self.held.add(keyword.arg or "")

    def _called(self, called: ast.expr, count: int) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
        """The submission's functions that this call may run. For an unknown name: every function that is mentioned
        without a call and takes `count` arguments.
        """
        if isinstance(called, ast.Lambda):
            return [called]
        if isinstance(called, ast.Attribute):
            return self.functions.get(called.attr, [])
        if not isinstance(called, ast.Name) or not self._is_own(called):
            return []
        if called.id in self.functions:
            return self.functions[called.id]
        self._steps += len(self.alone)
        if self._steps > _MOST_STEPS:
            raise Unreadable
        return [function for function in self.alone if len(_parameters(function)) == count]

    def _is_own(self, called: ast.Name) -> bool:
        return called.id not in self.names.imports and not self.names.dotted(called).startswith("builtins.")

    def _carries(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.held
            case ast.Attribute(attr=name, value=value):
                return name in self.held and name in self.own and not self._is_held(value)
            case ast.Call(func=func, args=args):
                if isinstance(func, ast.Attribute) and func.attr in _GIVES and self._carries(func.value):
                    return True
                last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
                dotted = self.names.dotted(func)
                passes = dotted == "functools.partial" or dotted.removeprefix("builtins.") in _CARRY
                return last in self.giving or (passes and any(map(self._carries, args)))
            case ast.Subscript(value=value) | ast.Starred(value=value):
                return self._carries(value)
            case ast.Dict(values=values):
                return any(map(self._carries, values))
            case ast.Tuple() | ast.List() | ast.Set() | ast.BoolOp() | ast.IfExp() | ast.BinOp() | ast.NamedExpr():
                return any(self._carries(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
            case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._carries(element)
        return False

    def _is_held(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) and self._carries(node)

    def notes(self) -> Iterator[Note]:
        """Note uses of the object other than a call."""
        for node in self.nodes:
            read = isinstance(node, ast.Call) or isinstance(getattr(node, "ctx", None), ast.Load)
            if read and isinstance(node, ast.expr) and self._is_held(node):
                yield from self._use(node)

    def tools(self) -> Iterator[Note]:
        """Note tools for inspecting objects, wherever the source uses them."""
        for node in self.nodes:
            yield from self._tool(node)

    def _use(self, held: ast.expr) -> Iterator[Note]:
        node, parent = held, self.parents[held]
        while isinstance(parent, _CONTAINERS):
            node, parent = parent, self.parents[parent]
        if isinstance(parent, ast.keyword):
            parent = self.parents[parent]
        match parent:
            case ast.Attribute(attr=name) if name in _KEEPS or name in _GIVES:  # methods of a container that holds it
                return
            case ast.Attribute(attr=name) if self.has_methods and not name.startswith("_"):
                return
            case ast.Call(func=func) if func is node or self._may_get(parent, held):
                return
        if not isinstance(parent, _USES):
            yield Note("apart", held.lineno, written(parent if isinstance(parent, ast.expr) else node))

    def _may_get(self, call: ast.Call, held: ast.expr) -> bool:
        func, dotted, count = call.func, self.names.dotted(call.func), len(call.args)
        if dotted in _TIMERS:
            values = (*call.args, *(keyword.value for keyword in call.keywords))
            return all(_STATEMENT.fullmatch(text(each)) for each in values)
        if dotted == "functools.partial":
            first = call.args[0] if call.args else held
            return self._carries(first) or bool(self._called(first, count - 1))
        if dotted == "builtins.getattr" and call.args[:1] == [held] and count > 1:
            name = text(call.args[1])
            return self.has_methods and bool(name) and not name.startswith("_")
        if isinstance(func, ast.Name) and func.id in self.also_called:
            return True
        if isinstance(func, ast.Attribute) and (func.attr in _KEEPS or func.attr in self.also_called):
            return True
        return dotted in _HARMLESS_CALLS or self._carries(func) or bool(self._called(func, count))

    def _tool(self, node: ast.AST) -> Iterator[Note]:
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name.startswith("_"):
                ordinary = name in _ORDINARY or (name in self.own and not _DUNDER.fullmatch(name))
                known = self.names.dotted(node).split(".")[0] == "torch" and not _DUNDER.fullmatch(name)
                if not ordinary and not known:
                    yield Note("apart", node.lineno, written(node))
            case ast.Attribute() | ast.Name() if isinstance(node.ctx, ast.Load):
                dotted = self.names.dotted(node)
                parent = self.parents.get(node)
                bare = dotted in _BARE and not (isinstance(parent, ast.Call) and parent.func is node)
                if _TOOLS.fullmatch(dotted) or bare:
                    yield Note("apart", node.lineno, shown(dotted.removeprefix("builtins.")))
            case ast.ImportFrom(module=str(module)):
                wholes = [f"{module}.{alias.name}" for alias in node.names]
                yield from (Note("apart", node.lineno, shown(whole)) for whole in wholes if _TOOLS.fullmatch(whole))
            case ast.MatchClass(kwd_attrs=attributes):
                yield from (Note("apart", node.lineno, shown(name)) for name in attributes if name.startswith("_"))
            case ast.Constant() | ast.BinOp() | ast.JoinedStr() if not isinstance(self.parents.get(node), ast.Expr):
                found = _DUNDER.search(text(node))
                if found and found[0] not in _ORDINARY:
                    yield Note("apart", node.lineno, shown(found[0]))


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _targets(target: ast.AST) -> Iterator[str]:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Subscript(value=value) | ast.Starred(value=value):
            yield from _targets(value)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for each in targets:
                yield from _targets(each)
