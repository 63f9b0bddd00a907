"""Make Triton's interpreter agree with its compiler: indices of loops, `and` of blocks, sorts, exchanges of floats."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

_RANGES = ("range",)  # also as an attribute: `tl.range`; the indices of `tl.static_range` are plain numbers
_ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
_METHODS = {ast.And: "logical_and", ast.Or: "logical_or"}


def install() -> None:
    """Change the interpreter. A second call does nothing."""
    from triton.runtime import interpreter

    module: Any = interpreter
    if hasattr(module, "loop_indices"):
        return
    module.loop_indices, module.all_evaluated = _loop_indices, _all_evaluated
    module.FunctionRewriter.ast_transformer = _rewriter(module.ASTTransformer)()
    module.InterpreterBuilder.create_atomic_rmw = _exchanging(module.InterpreterBuilder.create_atomic_rmw)
    _sort_by_numpy()


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


def _rewriter(original: type) -> type:
    class Rewriter(original):  # type: ignore[misc]
        def visit_For(self, node: ast.For) -> ast.AST:
            self.generic_visit(node)
            called = getattr(node.iter, "func", None)
            if getattr(called, "id", getattr(called, "attr", "")) in _RANGES:
                name = ast.copy_location(ast.Name("loop_indices", ast.Load()), node.iter)
                node.iter = ast.copy_location(ast.Call(name, [node.iter], []), node.iter)
            return node

        def visit_Assign(self, node: ast.Assign) -> ast.AST:
            node.value = self.visit(node.value)
            return super().visit_Assign(node)  # type: ignore[no-any-return]

        def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
            self.generic_visit(node)
            nothing = ast.arguments([], [], None, [], [], None, [])
            values = [ast.Lambda(nothing, value) for value in node.values]
            given = [ast.Constant(_METHODS[type(node.op)]), *values]
            call = ast.Call(ast.Name("all_evaluated", ast.Load()), given, [])
            return ast.fix_missing_locations(ast.copy_location(call, node))

    return Rewriter


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
