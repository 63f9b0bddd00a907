"""Make Triton's interpreter agree with its compiler: grids, constants, loop indices, `and` and `max` of blocks, sorts.

Reductions and scans with a function of the submission, which the interpreter calls for one element after another, call
it for whole blocks. If it branches, they call it for the elements of each branch.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

_RANGES = ("range",)  # also as an attribute: `tl.range`; the indices of `tl.static_range` are plain numbers
_ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
_TYPES = 256  # that are remembered
_METHODS = {ast.And: "logical_and", ast.Or: "logical_or"}


def install() -> None:
    """Change the interpreter. A second call does nothing."""
    from triton.runtime import interpreter

    module: Any = interpreter
    if hasattr(module, "loop_indices"):
        return
    module.loop_indices, module.all_evaluated, module.negated = _loop_indices, _all_evaluated, _negated
    module.by_element = _by_element
    module.GridExecutor.__init__ = _as_declared(module.GridExecutor.__init__)
    module._implicit_cvt = _with_flags(module._implicit_cvt)
    module.FunctionRewriter.ast_transformer = _Rewriter(module.ASTTransformer())
    module.InterpreterBuilder.create_atomic_rmw = _exchanging(module.InterpreterBuilder.create_atomic_rmw)
    module._patch_lang_tensor = _with_index(module._patch_lang_tensor)
    _sort_by_numpy()
    module._patch_lang_tensor = _completed(module._patch_lang_tensor)
    module.ReduceOps.generic_reduce = _by_blocks(_reduced)
    module.ScanOps.generic_scan = _by_blocks(_scanned)
    _patch_once_per_launch()
    _remember_types()


def _patch_once_per_launch() -> None:
    """Patch the language once per function and launch.

    The interpreter does so in each call of a function, `tl.max` among them: a quarter of a launch's time.
    """
    from triton.runtime import interpreter

    module: Any = interpreter
    patch, execute = module._patch_lang, module.GridExecutor.__call__
    patched: set[Any] = set()

    def patch_lang(function: Any) -> Any:
        if function in patched:
            return None
        patched.add(function)
        return patch(function)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        patched.clear()
        return execute(self, *args, **kwargs)

    module._patch_lang, module.GridExecutor.__call__ = patch_lang, call


def _remember_types() -> None:
    """Find NumPy's type of a type, and a block type's name and shape, once: each operation asks for some of them."""
    from triton.language import core
    from triton.runtime import interpreter

    module: Any = interpreter
    numpys, find = dict[str, Any](), module._get_np_dtype

    def np_dtype(kind: Any) -> Any:
        name = kind.scalar.name
        if name not in numpys:
            numpys[name] = find(kind)
        return numpys[name]

    module._get_np_dtype = np_dtype
    made: dict[Any, dict[str, Any]] = {}
    original: Any = core.block_type.__init__

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        key = (element_ty.name, *shape) if type(element_ty) is core.dtype else None
        known = made.get(key) if key is not None and all(type(size) is int for size in shape) else None
        if known is not None:
            self.__dict__.update(known, element_ty=element_ty)
            return
        original(self, element_ty, shape)
        if key is not None and len(made) < _TYPES:
            made[element_ty.name, *self.shape] = dict(vars(self))

    core.block_type.__init__ = init


def _as_declared(original: Any) -> Any:
    """Take a list as a grid too, and any annotation with `constexpr` as a constant's, under any name."""

    @functools.wraps(original)
    def init(self: Any, function: Any, arg_names: Any, grid: Any, *how: Any) -> None:
        called = (lambda args: _without_list(grid(args))) if callable(grid) else _without_list(grid)
        original(self, function, arg_names, called, *how)
        self.constexprs = [each for each in arg_names if "constexpr" in _annotation(function, each)]

    return init


def _annotation(function: Any, name: str) -> str:
    """Return a parameter's annotation and its value, if it is a name: the rewritten function has only the text."""
    text = str(function.__annotations__.get(name))
    return f"{text} {function.__globals__.get(text)}"


def _without_list(grid: Any) -> Any:
    return tuple(grid) if isinstance(grid, list) else grid


def _with_flags(original: Callable[..., Any]) -> Callable[..., Any]:
    """Convert True and False, too: the interpreter gives these arguments the type of one bit and the data of 32."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def convert(argument: Any) -> Any:
        if isinstance(argument, bool):
            return tl.tensor(TensorHandle(np.array([argument]), tl.int1), tl.int1)
        return original(argument)

    return convert


def _with_index(original: Callable[..., None]) -> Callable[..., None]:
    """Let tensors of one element be numbers in loops: Triton 3.6 asks NumPy 2.4 for what that no longer does."""

    def patch(tensor: Any, *scope: Any) -> None:
        original(tensor, *scope)
        if not scope:
            tensor.__index__ = lambda self: int(self.handle.data.squeeze())

    return patch


class LoopIndex(int):
    """The index of a loop, which is a tensor to the compiler. Sums and shifts by numbers, for example, are, too."""

    def to(self, dtype: Any, *how: Any, **named: Any) -> Any:
        from triton.runtime import interpreter

        return interpreter.interpreter_semantic.to_tensor(int(self), False).to(dtype, *how, **named)


def _kept(name: str) -> Callable[..., Any]:
    compute = getattr(int, name)

    def operation(self: int, other: Any) -> Any:
        found = compute(self, other)
        return LoopIndex(found) if type(found) is int else found

    return operation


for _name in _ARITHMETIC:
    for _each in (f"__{_name}__", f"__r{_name}__"):
        setattr(LoopIndex, _each, _kept(_each))


def _loop_indices(numbers: Iterable[Any]) -> Iterable[Any]:
    return map(LoopIndex, numbers) if isinstance(numbers, range) else numbers


def _all_evaluated(method: str, *values: Callable[[], Any]) -> Any:
    """Return `a and b` or `a or b` as the compiler does: only a constant ends it early, and blocks go by element."""
    tensors: list[Any] = []
    value: Any = None
    for each in values:
        value = each()
        if hasattr(value, "handle"):
            tensors.append(value)
        elif bool(value) is (method == "logical_or"):
            return value
    return functools.reduce(lambda one, other: getattr(one, method)(other), tensors) if tensors else value


def _negated(value: Any) -> Any:
    """Return `not value` as the compiler does: a block's by element."""
    return value.__not__() if hasattr(value, "handle") and value.handle.data.size > 1 else not value


def _by_element(function: Any, *values: Any, **named: Any) -> Any:
    """Return Python's `max` or `min` as the compiler does: a block's by element."""
    import triton.language as tl

    if function not in (max, min) or not any(hasattr(value, "handle") for value in values):
        return function(*values, **named)
    larger = tl.maximum if function is max else tl.minimum
    return functools.reduce(lambda one, other: larger(one, other, **named), values)


class _Rewriter(ast.NodeTransformer):
    """Rewrite loops, `and`, `or`, `not`, `max` and `min` of a kernel. The interpreter's own transformer does the rest.

    The two go over the tree one after the other: Triton 3.9 descends into assignments itself, Triton 3.7 does not.
    """

    def __init__(self, triton: ast.NodeTransformer) -> None:
        self._triton = triton

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self.generic_visit(node)
        return self._triton.visit(node)  # type: ignore[no-any-return]

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        called = getattr(node.iter, "func", None)
        if getattr(called, "id", getattr(called, "attr", "")) in _RANGES:
            name = ast.copy_location(ast.Name("loop_indices", ast.Load()), node.iter)
            node.iter = ast.copy_location(ast.Call(name, [node.iter], []), node.iter)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if getattr(node.func, "id", "") in ("max", "min"):
            node.args.insert(0, node.func)
            node.func = ast.copy_location(ast.Name("by_element", ast.Load()), node.func)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        nothing = ast.arguments([], [], None, [], [], None, [])
        values = [ast.Lambda(nothing, value) for value in node.values]
        given = [ast.Constant(_METHODS[type(node.op)]), *values]
        call = ast.Call(ast.Name("all_evaluated", ast.Load()), given, [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        call = ast.Call(ast.Name("negated", ast.Load()), [node.operand], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _exchanging(original: Any) -> Any:
    """Exchange floating-point numbers as integers of their size: the interpreter has no exchange for them."""
    from triton._C.libtriton import ir
    from triton.runtime.interpreter import TensorHandle

    @functools.wraps(original)
    def create_atomic_rmw(self: Any, operation: Any, ptr: Any, val: Any, *how: Any) -> Any:
        if operation != ir.ATOMIC_OP.XCHG or val.data.dtype.kind != "f":
            return original(self, operation, ptr, val, *how)
        bits = TensorHandle(val.data.view(f"u{val.data.itemsize}"), val.dtype)
        found = original(self, operation, ptr, bits, *how)
        return TensorHandle(found.data.view(val.data.dtype), val.dtype.scalar)

    return create_atomic_rmw


def _sort_by_numpy() -> None:
    """Sort by NumPy: the compiler's own steps take a fifth of a second for a block in the interpreter."""
    import triton.language as tl
    from triton.language import standard
    from triton.runtime.interpreter import TensorHandle

    module: Any = standard
    by_steps = module.sort_impl

    def sort_impl(x: Any, k: Any = None, dim: Any = None, descending: Any = False) -> Any:
        k, dim, descending = (getattr(each, "value", each) for each in (k, dim, descending))
        if x.dtype == tl.bfloat16 or dim not in (None, len(x.shape) - 1):
            return by_steps(x, k, dim, descending)
        found = np.sort(x.handle.data, axis=-1)
        found = np.flip(found, -1) if descending else found
        found = np.ascontiguousarray(found[..., :k])
        return tl.tensor(TensorHandle(found, x.dtype), tl.block_type(x.dtype, list(found.shape)))

    module.sort_impl = sort_impl


def _completed(original: Any) -> Any:
    """Give tensors methods such as `exp`. Those of one element are integers, also for Triton 3.6 and a newer NumPy."""
    import triton.language as tl

    names = [name for name, value in vars(tl.math).items() if tl.core.is_builtin(value) and hasattr(tl.tensor, name)]
    methods: dict[str, Any] = {name: _method(name) for name in names}
    methods["__index__"] = lambda tensor: int(tensor.handle.data.squeeze())
    methods["__bool__"] = _truth

    @functools.wraps(original)
    def patch(tensor: Any, *scope: Any) -> None:
        original(tensor, *scope)
        for name, method in methods.items():
            (scope[0].set_attr if scope else setattr)(tensor, name, method)

    return patch


def _method(name: str) -> Callable[..., Any]:
    import triton.language as tl

    return lambda tensor, *args, **named: getattr(tl.math, name)(tensor, *args, **named)


class _Branches(BaseException):
    """A condition is true for some elements of a block. The interpreter would catch an `Exception`."""

    def __init__(self, condition: Any) -> None:
        super().__init__()
        self.condition = condition


_combining = False  # blocks, by a function for single elements


@contextlib.contextmanager
def _branching() -> Iterator[None]:
    global _combining
    before, _combining = _combining, True
    try:
        yield
    finally:
        _combining = before


def _truth(tensor: Any) -> bool:
    """Return a condition's value. The compiler refuses that of a block, and the interpreter takes it as true."""
    data = tensor.handle.data
    if data.size > 1 and not _combining:
        return True
    if data.any() != data.all():
        raise _Branches(data.ravel() != 0)
    return bool(data.any())


def _by_blocks(by_blocks: Any) -> Any:
    """Combine blocks. If a function branches, the elements of each branch are combined apart."""

    def combine(self: Any, given: Any) -> Any:
        def combined(left: list[Any], right: list[Any]) -> list[Any]:
            shape = left[0].shape
            found = by_branches([np.broadcast_to(data, shape).ravel() for data in (*left, *right)])
            return [data.reshape(shape).astype(like.dtype) for data, like in zip(found, left, strict=True)]

        def by_branches(data: list[Any]) -> list[Any]:
            size = data[0].size
            whole = 1 << (size - 1).bit_length()  # a block's size is a power of two
            types = (each.dtype for each in (*given, *given))
            blocks = [self.to_tensor(np.resize(each, whole), dtype) for each, dtype in zip(data, types, strict=True)]
            try:
                with _branching():
                    found = self.combine_fn(*blocks)
            except _Branches as branches:
                chosen = branches.condition[:size]
                halves = [by_branches([each[half] for each in data]) for half in (chosen, ~chosen)]
                made = [np.empty(size, np.result_type(*pair)) for pair in zip(*halves, strict=True)]
                for half, some in zip((chosen, ~chosen), halves, strict=True):
                    for into, each in zip(made, some, strict=True):
                        into[half] = each
                return made
            found = found if isinstance(found, tuple) else (found,)
            return [np.resize(each.handle.data if hasattr(each, "handle") else each, size) for each in found]

        with np.errstate(all="ignore"):
            return by_blocks(self, given, combined)

    return combine


def _reduced(self: Any, given: Any, combined: Any) -> list[Any]:
    """Combine neighbours until one element is left along the axis."""
    axis = self.axis
    data = [each.handle.data.ravel() if axis is None else np.moveaxis(each.handle.data, axis, -1) for each in given]
    while data[0].shape[-1] > 1:
        data = combined([each[..., ::2] for each in data], [each[..., 1::2] for each in data])
    shape = list(given[0].handle.data.shape)
    if axis is None:
        shape = [1] * len(shape) if self.keep_dims else []
    else:
        shape[axis : axis + 1] = [1] if self.keep_dims else []
    return [self.to_tensor(one.reshape(shape)[()], each.dtype) for one, each in zip(data, given, strict=True)]


def _scanned(self: Any, given: Any, combined: Any) -> list[Any]:
    """Combine each element with those 1, 2, 4, … before it."""
    data = [np.moveaxis(each.handle.data, self.axis, -1) for each in given]
    at, before = np.arange(data[0].shape[-1]), 1
    while before < at.size:
        made = combined([np.roll(each, before, -1) for each in data], data)
        data = [np.where(at >= before, new, old) for new, old in zip(made, data, strict=True)]
        before *= 2
    return [self.to_tensor(np.moveaxis(one, -1, self.axis), each.dtype) for one, each in zip(data, given, strict=True)]
