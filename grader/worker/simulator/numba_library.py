"""Parts that Numba's CUDA simulator only declares: the functions of `libdevice`, and `vectorize(…, target="cuda")`.

A function of `libdevice` that is not here ends in "The simulator has no …". Fast ones are as exact as the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from grader.worker.simulator.lacks import NotSimulated

_NAME = re.compile(r"(?:fast_)?(?P<base>[a-z0-9]+?)f?(?:_rn)?")
_RETURNS = re.compile(r":rtype: (?P<pair>UniTuple\()?(?P<type>\w+)")
_NUMBERS = {int, float, np.float32, np.float64, np.int32, np.int64}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos,
    "cosh": np.cosh, "cospi": lambda x: np.cos(np.pi * x), "dadd": np.add, "ddiv": np.divide, "dmul": np.multiply,
    "drcp": np.reciprocal, "dsqrt": np.sqrt, "erf": math.erf, "erfc": math.erfc, "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1, "fabs": np.fabs, "fadd": np.add,
    "fdim": lambda x, y: np.fmax(x - y, 0.0), "fdiv": np.divide, "fdivide": np.divide, "floor": np.floor,
    "fma": lambda x, y, z: x * y + z, "fmax": np.fmax, "fmin": np.fmin, "fmod": np.fmod, "fmul": np.multiply,
    "frcp": np.reciprocal, "frsqrt": lambda x: 1 / np.sqrt(x), "fsqrt": np.sqrt, "fsub": np.subtract,
    "hypot": np.hypot, "lgamma": math.lgamma, "llabs": abs, "llmax": max, "llmin": min, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "max": max, "min": min, "pow": np.power,
    "rint": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x), "saturate": lambda x: np.clip(x, 0.0, 1.0), "sin": np.sin,
    "sincos": lambda x: (np.sin(x), np.cos(x)), "sincospi": lambda x: (np.sin(np.pi * x), np.cos(np.pi * x)),
    "sinh": np.sinh, "sinpi": lambda x: np.sin(np.pi * x), "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "tgamma": math.gamma, "trunc": np.trunc, "umax": max, "umin": min,
}  # fmt: skip


def install(libdevice: Any, vectorizers: Any) -> None:
    """Replace the stubs of `numba.cuda.libdevice`, and the classes behind `vectorize` and `guvectorize`."""
    for name, stub in list(vars(libdevice).items()):
        if isinstance(stub, FunctionType):
            setattr(libdevice, name, _computed(name, stub.__doc__ or ""))
    _convert_quickly()
    vectorizers.CUDAVectorize = Vectorized
    vectorizers.CUDAGUFuncVectorize = _not_generalized


def _convert_quickly() -> None:
    """Let `float32(0)` in a kernel skip the import and the checks for a signature, such as `float32(float32)`."""
    from numba.core.types import Number

    original = Number.__call__

    def call(self: Any, *args: Any) -> Any:
        if len(args) == 1 and type(args[0]) in _NUMBERS:
            return self.cast_python_value(args[0])
        return original(self, *args)

    Number.__call__ = call  # type: ignore[method-assign]


def _computed(name: str, text: str) -> Callable[..., Any]:
    match, returns = _NAME.fullmatch(name), _RETURNS.search(text)
    function = _FUNCTIONS.get(match["base"]) if match else None

    def compute(*args: Any) -> Any:
        if function is None or returns is None:
            raise NotSimulated(f"`libdevice.{name}`")
        made = np.dtype(returns["type"]).type
        with np.errstate(all="ignore"):
            found = function(*(each.item() if isinstance(each, np.generic) else each for each in args))
            return tuple(map(made, found)) if returns["pair"] else made(found)

    return compute


class Vectorized:
    """The builder behind `vectorize(signatures, target="cuda")`, and the function that it builds."""

    def __init__(self, function: Callable[..., Any], *_: Any, **__: Any) -> None:
        self._function, self._signatures = function, list[Any]()

    def add(self, sig: Any) -> None:
        from numba.core.sigutils import normalize_signature

        self._signatures.append(normalize_signature(sig))

    def disable_compile(self) -> None:
        """Accept no further signatures: nothing to do."""

    def build_ufunc(self) -> Vectorized:
        return self

    def __call__(self, *args: Any, out: Any = None, stream: Any = 0) -> Any:
        """Compute each element by the first signature to which the arguments can be cast."""
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
        from numba.np.numpy_support import as_dtype

        hosts = [getattr(each, "_ary", each) for each in args]
        types = [([as_dtype(each) for each in given], as_dtype(returned)) for given, returned in self._signatures]
        fitting = [each for each in types if len(each[0]) == len(hosts) and all(map(_castable, hosts, each[0]))]
        if not fitting:
            raise TypeError("No matching version. GPU ufunc requires array arguments to have the exact types.")
        wanted, returned = fitting[0]
        made = np.vectorize(self._function, otypes=[returned])(*map(np.asarray, hosts, wanted))
        if out is None:
            return FakeCUDAArray(made) if any(hasattr(each, "_ary") for each in args) else made
        getattr(out, "_ary", out)[...] = made
        return out


def _castable(host: Any, wanted: Any) -> bool:
    return not isinstance(host, np.ndarray) or np.can_cast(host.dtype, wanted, "safe")


def _not_generalized(*_: Any, **__: Any) -> None:
    raise NotSimulated("`guvectorize` with `target='cuda'`")
