"""bfloat16 for Triton's interpreter, which keeps it as uint16 and would compute with these integers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from grader.worker.simulator.lacks import NotSimulated

_UNARY = ("create_erf", "create_rsqrt")


def install() -> None:
    """Let the interpreter compute with bfloat16, rounded after each operation. A second call does nothing."""
    import triton.language as tl
    from triton.runtime import interpreter

    builder: Any = interpreter.InterpreterBuilder
    if hasattr(builder.binary_op, "__wrapped__"):
        return

    def is_bf16(kind: Any) -> bool:
        return bool(kind.scalar == tl.bfloat16)

    def wide(handle: Any) -> Any:
        return interpreter.TensorHandle(_decoded(handle.data), tl.float32) if is_bf16(handle.dtype) else handle

    def narrow(handle: Any) -> Any:
        """Keep comparisons, which are bool, and round everything else."""
        if handle.data.dtype == bool:
            return interpreter.TensorHandle(handle.data, tl.int1)
        return interpreter.TensorHandle(_encoded(handle.data), tl.bfloat16)

    def through_float32(original: Any, operands: int) -> Any:
        @functools.wraps(original)
        def compute(self: Any, *args: Any) -> Any:
            if not any(is_bf16(each.dtype) for each in args[:operands]):
                return original(self, *args)
            return narrow(original(self, *map(wide, args[:operands]), *args[operands:]))

        return compute

    def dot(original: Any) -> Any:
        @functools.wraps(original)
        def create_dot(self: Any, a: Any, b: Any, d: Any, *how: Any) -> Any:
            made = original(self, wide(a), wide(b), wide(d), *how)
            return narrow(made) if is_bf16(d.dtype) else made

        return create_dot

    def cast(original: Any) -> Any:
        @functools.wraps(original)
        def converted(self: Any, source: Any, kind: Any, *how: Any) -> Any:
            if is_bf16(source.dtype) == is_bf16(kind):
                return original(self, source, kind, *how)
            if is_bf16(kind):
                return narrow(interpreter.TensorHandle(source.data.astype(np.float32), tl.float32))
            data = _decoded(source.data).astype(interpreter._get_np_dtype(kind))
            return interpreter.TensorHandle(data, kind.scalar)

        return converted

    def refused(original: Any) -> Any:
        @functools.wraps(original)
        def create_atomic_rmw(self: Any, operation: Any, ptr: Any, *args: Any) -> Any:
            if is_bf16(ptr.get_element_ty()):
                raise NotSimulated("atomics for bfloat16")
            return original(self, operation, ptr, *args)

        return create_atomic_rmw

    builder.get_bf16 = lambda self, value: interpreter.TensorHandle(_encoded(np.array([value])), tl.bfloat16)
    for name, operands in (("binary_op", 2), ("unary_op", 1), ("ternary_op", 3), ("create_fma", 3)):
        setattr(builder, name, through_float32(getattr(builder, name), operands))
    for name in _UNARY:
        setattr(builder, name, through_float32(getattr(builder, name), 1))
    builder.create_dot = dot(builder.create_dot)
    builder.cast_impl = cast(builder.cast_impl)
    builder.create_fp_to_fp = cast(builder.create_fp_to_fp)
    builder.create_atomic_rmw = refused(builder.create_atomic_rmw)


def _decoded(bits: Any) -> Any:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _encoded(values: Any) -> Any:
    """Round to the nearest bfloat16, and to the even one of two."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    bits = values.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)
