"""What the names in a submission stand for. Nothing is run."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from grader.submission.solution_cell import bindings

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_MOST_CHARACTERS = 200  # of a name that is put together
_MOST_PARTS = 64  # of an expression that is put together: it may be asked for often


class Names:
    """The imports, aliases and definitions of one module."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.imports: dict[str, str] = {}  # local name -> dotted name
        self.stars: set[str] = set()  # modules of `from … import *`
        self.top: dict[str, ast.stmt] = dict(bindings(module))  # the last binding at module level
        self._bound = Counter(_bound(module))
        self._dotted: dict[tuple[ast.expr, int], str] = {}
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name.split(".")[0]
                    self.imports[alias.asname or root] = alias.name if alias.asname else root
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.add(node.module or "")
                    else:
                        self.imports[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        self._aliases = {
            target.id: node.value
            for node in ast.walk(module)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and self._bound[target.id] == 1
        }

    @property
    def modules(self) -> set[str]:
        """The packages that something is imported from, and those whose names a text spells out."""
        return {dotted.split(".")[0] for dotted in self.imports.values()} | {"torch", "triton", "time", "grader"}

    def value_of(self, node: ast.expr) -> ast.expr:
        """What a name was given, where it was given something once; any other expression as it is."""
        return self._aliases.get(node.id, node) if isinstance(node, ast.Name) else node

    def dotted(self, node: ast.expr, depth: int = 12) -> str:
        """The dotted name that an expression stands for (`F.softmax` -> "torch.nn.functional.softmax"), or ""."""
        if depth == 0:
            return ""
        if (node, depth) not in self._dotted:
            self._dotted[node, depth] = self._read(node, depth)
        return self._dotted[node, depth]

    def _read(self, node: ast.expr, depth: int) -> str:
        match node:
            case ast.Name(id=name):
                if name in self.imports:
                    return self.imports[name]
                if name in self._aliases:
                    return self.dotted(self._aliases[name], depth - 1)
                return "" if self._bound[name] else f"builtins.{name}"
            case ast.Attribute(value=value, attr=attribute):
                return _join(self.dotted(value, depth - 1), attribute)
            case ast.Call(func=func, args=[first, *rest]):
                called = self.dotted(func, depth - 1)
                if called == "builtins.getattr" and rest:
                    return _join(self.dotted(first, depth - 1), text(rest[0]))
                if called in ("importlib.import_module", "builtins.__import__"):
                    return text(first)
            case ast.Subscript(value=value, slice=key):
                return self._looked_up(value, text(key), depth)
        return ""

    def _looked_up(self, value: ast.expr, key: str, depth: int) -> str:
        if not key:
            return ""
        if isinstance(value, ast.Call) and value.args and self.dotted(value.func, depth - 1) == "builtins.vars":
            return _join(self.dotted(value.args[0], depth - 1), key)
        holder = self.dotted(value, depth - 1)
        if holder == "sys.modules":
            return key
        return _join(holder.removesuffix(".__dict__"), key) if holder.endswith(".__dict__") else ""


def _join(holder: str, attribute: str) -> str:
    whole = f"{holder}.{attribute}"
    return whole if holder and attribute and len(whole) <= _MOST_CHARACTERS else ""


def _bound(module: ast.Module) -> Iterator[str]:
    """Names that get a value other than by an import, once for each place."""
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def text(node: ast.expr) -> str:
    """The text that an expression is known to be: a constant, or some constants put together. "" where it is not known."""
    parts: list[str] = []
    waiting: list[ast.expr] = [node]
    for _ in range(_MOST_PARTS):
        match waiting.pop():
            case ast.Constant(value=str(value)):
                parts.append(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                waiting += [right, left]
            case ast.JoinedStr(values=values):
                waiting += reversed(values)
            case ast.FormattedValue(value=inner):
                waiting.append(inner)
            case _:
                return ""
        if not waiting:
            return "".join(parts) if all(parts) else ""
    return ""


def number(node: ast.expr) -> int | None:
    """The whole number that an expression of constants is, up to 2**63, or None."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(value)):
            return value if abs(value) < 1 << 63 else None
        case ast.BinOp(left=left, op=op, right=right):
            a, b = number(left), number(right)
            if a is None or b is None or abs(a) >= 1 << 63 or not 0 <= b < 1 << 63:
                return None
            match op:
                case ast.LShift() if b < 64:
                    return a << b
                case ast.Mult():
                    return a * b
                case ast.Pow() if b < 64:
                    return int(a**b)
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
    return None


def words(text: str) -> frozenset[str]:
    """A list of names, written as text."""
    return frozenset(text.split())


# What names of torch (and CuPy) mean for the reading of a source: which make tensors, move them, or compute.

COMPILERS = {"torch.compile", "torch.jit.script", "torch.jit.trace", "torch._dynamo.optimize"}
CACHES = {"functools.cache", "functools.lru_cache"}
CHECKS = {"allclose", "assert_close", "isclose", "equal", "assert_allclose", "array_equal", "array_equiv"}
CONTAINERS = {"builtins.tuple", "builtins.list", "builtins.frozenset", "builtins.str", "builtins.int"}
OF_SIZES = {"builtins.len", "builtins.int", "math.prod", "torch.Size"}
LOOKUPS = {"get", "setdefault", "pop", "add", "__getitem__", "__setitem__", "__contains__"}

SIZES = {"shape", "size", "numel", "nelement", "__len__"}
FACTS = words(
    """stride item tolist dim ndimension is_contiguous element_size get_device type storage_offset untyped_storage
    storage is_floating_point is_complex is_pinned record_stream requires_grad_ register_hook backward"""
)
FILLS = {"zero_", "fill_", "record_stream", "requires_grad_", "uniform_", "normal_", "random_", "detach_", "resize_"}
CREATES = words(
    """empty empty_like empty_strided zeros zeros_like ones ones_like full full_like tensor arange linspace eye rand
    randn randint rand_like randn_like new_empty new_zeros new_ones new_full new_tensor new_empty_strided"""
)
VIEWS = words(
    """T mT H mH data real grad contiguous view view_as reshape reshape_as flatten ravel unflatten squeeze unsqueeze
    transpose t permute movedim swapaxes expand expand_as broadcast_to narrow select chunk split tensor_split unbind
    unfold as_strided diagonal detach clone to cpu cuda float double half bfloat16 type_as pin_memory alias
    as_tensor asarray from_dlpack to_dlpack from_numpy numpy as_cuda_array stack cat concat concatenate hstack vstack
    pad constant_pad_nd flip roll repeat tile index_select gather take __getitem__"""
)

_OF_KERNELS = {"triton", "numba", "cupyx"}


def canonical(dotted: str) -> str:
    """The name if it is one of torch's or CuPy's; "" for others, among them operators that somebody registered."""
    parts = dotted.split(".")
    if parts[0] not in ("torch", "cupy"):
        return ""
    if parts[:2] == ["torch", "ops"] and parts[2:3] not in (["aten"], ["prims"]):
        return ""
    return dotted


def operation(name: str) -> str:
    """What a function does: "softmax" for `nn.functional.softmax` and `aten.softmax.int_out`, "exp" for `exp_`."""
    parts = name.split(".")
    last = parts[3] if parts[:2] == ["torch", "ops"] and len(parts) > 3 else parts[-1]
    if last.startswith("__"):
        return last
    return last.removesuffix("_out").rstrip("_")


def is_kernel(names: Names, function: ast.AST) -> bool:
    """Whether a compiler for the GPU takes the function: what it says are not calls of torch."""
    decorators = getattr(function, "decorator_list", ())
    return any(is_jit(names, each.func if isinstance(each, ast.Call) else each) for each in decorators)


def is_jit(names: Names, node: ast.expr) -> bool:
    """Whether this is what makes a kernel of a function: `triton.jit`, `cuda.jit`, `jit.rawkernel`, `gluon.jit`."""
    dotted = names.dotted(node)
    if dotted.split(".")[0] in _OF_KERNELS:
        return dotted.endswith((".jit", ".rawkernel", ".JITFunction"))
    return dotted == "builtins.jit" and any(star.split(".")[0] in _OF_KERNELS for star in names.stars)
