"""Make Numba's CUDA simulator closer to a GPU, so that it shows more bugs, and faster.

Unwritten memory holds NaN, and the device has a multiprocessor. As on a GPU, a kernel with one signature takes the
bytes of its arguments, and with several signatures one must match. `numba_blocks.py` runs the kernels.

Numba's simulator only declares `vectorize(…, target="cuda")` and the functions of `libdevice`. Here they compute; fast
ones are as exact as the others, and one that is missing ends in "The simulator has no …".
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from grader.protocol.target import target
from grader.worker.simulator import numba_compiled, tally
from grader.worker.simulator.accesses import RACE, observe, rights_of
from grader.worker.simulator.lacks import NotSimulated
from grader.worker.simulator.multiprocessors import MULTIPROCESSORS

_DEVICE = {
    "MULTIPROCESSOR_COUNT": MULTIPROCESSORS, "WARP_SIZE": 32, "MAX_THREADS_PER_BLOCK": 1024, "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": (1 << 31) - 1, "MAX_GRID_DIM_Y": 65_535,
    "MAX_GRID_DIM_Z": 65_535, "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10, "name": b"SIMULATOR",
}  # fmt: skip
_OPTIONS = {
    "cache", "debug", "device", "fastmath", "forceinline", "inline", "launch_bounds", "lineinfo", "link", "lto",
    "max_registers", "opt", "shared_memory_carveout",
}  # fmt: skip
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


def offer() -> None:
    """Make `numba.cuda` the simulator when it is imported. This affects the whole process, so it is for workers."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    if "numba.cuda" not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def array(tensor: Any) -> Any:
    """Return a device array over a tensor's memory. An input's memory is read-only: a write to it raises."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    host = tensor.numpy()
    if "w" not in rights_of(tensor.data_ptr()):
        host = np.lib.stride_tricks.as_strided(host, writeable=False)
    return FakeCUDAArray(host)


class _Finder:
    """Patch `numba.cuda` at the end of its import."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name != "numba.cuda":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_patch(module: ModuleType) -> None:
                execute(module)
                _patch(module)

            loader.exec_module = execute_and_patch
        return spec


def _patch(cuda: Any) -> None:
    from numba.cuda import libdevice, vectorizers
    from numba.cuda.simulator import kernel, kernelapi
    from numba.cuda.simulator.cudadrv import devices

    from grader.worker.simulator import numba_blocks

    made = cuda.device_array

    @functools.wraps(made)
    def poisoned(*args: Any, **kwargs: Any) -> Any:
        new = made(*args, **kwargs)
        if np.issubdtype(new.dtype, np.floating):
            new[...] = np.nan
        return new

    for name, value in _DEVICE.items():
        setattr(devices.FakeCUDADevice, name, value)
    for owner in (devices.FakeCUDADevice, devices.FakeCUDAContext):
        owner.compute_capability = divmod(target(), 10)
    devices.gpus.lst = tuple(map(_managed(devices.FakeCUDAContext), range(len(devices.gpus))))
    for name in [name for name, value in vars(cuda).items() if name.startswith("compile") and value is None]:
        setattr(cuda, name, functools.partial(_not_here, f"`cuda.{name}`"))
    numba_blocks.install()
    _complete(libdevice, vectorizers)
    launch = kernel.FakeCUDAKernel.__call__
    kernel.FakeCUDAKernel.__call__ = lambda self, *args, **named: _launched(
        launch, self, *map(_adopted, _in_order(self, args, named))
    )
    cuda.get_current_device = lambda: devices.gpus[0].device
    cuda.select_device = lambda device_id: devices.gpus[device_id].device
    cuda.device_array = poisoned
    cuda.device_array_like = lambda like, stream=0: poisoned(shape=like.shape, dtype=like.dtype)
    cuda.external_stream = lambda pointer: cuda.stream()
    cuda.as_cuda_array = lambda given, sync=True: _adopted(given)
    cuda.jit = functools.partial(_jit, cuda.jit)
    kernelapi.FakeCUDAModule.__getattr__ = functools.partial(_constant, vars(cuda))
    cuda.__getattr__ = functools.partial(_of_kernels, kernel, vars(kernelapi.FakeCUDAModule), cuda.__name__)


def _managed(context: Any) -> Any:
    """Return the class of what `cuda.gpus` holds: it has the attributes of its device."""
    return type("_DeviceContextManager", (context,), {"__getattr__": lambda self, name: getattr(self._device, name)})


def _not_here(what: str, *_: Any, **__: Any) -> None:
    raise NotSimulated(what)


def _adopted(argument: Any) -> Any:
    """Return a tensor as a device array, because Numba's kernels take tensors of a GPU, too.

    Ask the type: an array that a kernel passes to a device function takes an unknown attribute for an index.
    """
    return array(argument) if hasattr(type(argument), "data_ptr") else argument


def _in_order(kernel: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return a call's arguments without their names, which only the calls of device functions may have."""
    if named and kernel.grid_dim is not None:
        first = min(named)
        raise TypeError(
            f"_LaunchConfiguration.__call__() got an unexpected keyword argument {first!r}"
        )  # Numba's words
    return inspect.signature(kernel.fn).bind(*args, **named).args if named else args


def _constant(known: dict[str, Any], name: str) -> Any:
    """Return what a kernel finds in `numba.cuda` as the host does: types and modules, such as `cuda.float32`."""
    from numba.core.types import Type

    found = known.get(name)
    if isinstance(found, (Type, ModuleType)):
        return found
    raise AttributeError(f"'FakeCUDAModule' object has no attribute '{name}'")


def _of_kernels(kernel: Any, members: Mapping[str, Any], module: str, name: str) -> Any:
    """Return what `numba.cuda` has only in kernels, for one that does not find it by a global of its module."""
    current = kernel._get_kernel_context()
    if current is not None and not name.startswith("__"):
        return getattr(current, name)
    if current is None and name in members and not name.startswith("_"):
        raise NotSimulated(f"`from numba.cuda import {name}`")
    raise AttributeError(f"module '{module}' has no attribute '{name}'")


def _launched(launch: Callable[..., Any], kernel: Any, *args: Any) -> Any:
    """Launch a kernel; one without a signature is also compiled, for the types of these arguments."""
    asked = getattr(kernel, "asked", None)
    if asked is not None and not asked.get("device") and kernel.grid_dim is not None:
        types = tuple(map(_type_of, args))
        known = _compiled_for(kernel)
        numba_compiled.start(kernel.fn, types, asked, again=types not in known)
        if types not in known:
            known.append(types)
    host = not kernel._device and kernel.grid_dim is not None
    if host:
        _compare_constants(kernel, () if asked is None else tuple(map(_type_of, args)))
    result = launch(kernel, *args)
    if host:
        from grader.worker.simulator import numba_blocks

        name = getattr(kernel.fn, "__name__", "")
        line, counts = tally.line_of_submission(), numba_blocks.counts()
        tally.launched(name, tuple(kernel.grid_dim), prod(kernel.block_dim), line, **counts)
    return result


def _compare_constants(kernel: Any, types: tuple[Any, ...]) -> None:
    """Report a module's variable that has changed since a GPU would have compiled its value into the kernel."""
    code, space = kernel.fn.__code__, kernel.fn.__globals__
    kinds = (bool, int, float, np.generic, np.ndarray)
    now = {name: np.asarray(space[name]).tobytes() for name in code.co_names if isinstance(space.get(name), kinds)}
    seen = vars(kernel).setdefault("constants", {}).setdefault(types, now)
    for name in now:
        if seen.get(name, now[name]) != now[name]:
            said = f"`{name}` has changed since the kernel was compiled: on a GPU, the kernel still has the old value."
            observe(RACE, said, code.co_firstlineno, f"Pass `{name}` to the kernel as an argument.")


def _jit(original: Callable[..., Any], function_or_signature: Any = None, **options: Any) -> Any:
    """Act as `cuda.jit`: take the real one's options, and compile for the given signatures."""
    if unknown := set(options) - _OPTIONS:
        raise TypeError(f"_Kernel.__init__() got an unexpected keyword argument {min(unknown)!r}")  # Numba's words
    asked = options
    options = {name: value for name, value in options.items() if name in ("device", "fastmath", "debug")}
    if function_or_signature is None:
        return functools.partial(_jit, original, **asked)
    function, compiled_for = _undecorated(function_or_signature)
    if callable(function) and hasattr(function, "__code__"):
        made = original(function, **options)
        made.asked, made.compiled_for = asked, compiled_for
        return _bounded(made, asked)
    from numba.core.sigutils import normalize_signature
    from numba.types import none

    many = isinstance(function_or_signature, list)
    signatures = function_or_signature if many else [function_or_signature]

    def decorate(function: Any) -> Any:
        function, compiled_for = _undecorated(function)
        made = _bounded(original(function, **options), asked)
        if options.get("device"):
            return made
        for signature in signatures:
            if normalize_signature(signature)[1] not in (None, none):
                raise TypeError("CUDA kernel must have void return type.")  # Numba's words
            numba_compiled.start(function, _arguments(signature), asked, again=True)
            compiled_for.append(_arguments(signature))
        made.compiled_for = compiled_for
        _compare_constants(made, ())
        return _Checked(made, [_arguments(each) for each in signatures]) if many else _Compiled(made, compiled_for[:1])

    return decorate


def _undecorated(function: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return the function of a kernel that is decorated again, and what that kernel is compiled for.

    In Numba 0.68, both kernels share what they are compiled for, and one with a signature always runs the oldest code.
    """
    kernel = getattr(function, "_kernel", function)
    return (kernel.fn, _compiled_for(kernel)) if type(kernel).__name__ == "FakeCUDAKernel" else (function, [])


def _compiled_for(kernel: Any) -> list[tuple[Any, ...]]:
    """The types that a kernel is compiled for, the oldest first."""
    found: list[tuple[Any, ...]] = vars(kernel).setdefault("compiled_for", [])
    return found


def _bounded(kernel: Any, asked: dict[str, Any]) -> Any:
    """Return the kernel with the largest block that its launch bounds allow."""
    if bounds := asked.get("launch_bounds"):
        kernel.most_threads = bounds[0] if isinstance(bounds, tuple) else bounds
    return kernel


def _arguments(signature: Any) -> tuple[Any, ...]:
    from numba.core.sigutils import normalize_signature

    return tuple(normalize_signature(signature)[0])


class _Compiled:
    """A kernel that was compiled for one signature: it takes the bytes of its arguments, whatever their type."""

    def __init__(self, kernel: Any, signatures: list[tuple[Any, ...]]) -> None:
        self._kernel, self._signatures = kernel, signatures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def __getitem__(self, configuration: Any) -> _Compiled:
        return type(self)(self._kernel[configuration], self._signatures)

    def __call__(self, *args: Any) -> None:
        (signature,), args = self._signatures, tuple(map(_adopted, args))
        if len(args) != len(signature):
            raise TypeError(
                f"This kernel was compiled for another number of arguments: {len(signature)}, and gets {len(args)}."
            )
        converted = [_reinterpreted(*each) for each in zip(args, signature, strict=True)]
        with _nan_outside_domains() if any(map(operator.is_not, converted, args)) else contextlib.nullcontext():
            self._kernel(*converted)


class _Checked(_Compiled):
    """A kernel that was compiled for several signatures: each call needs one that matches its arguments."""

    def __call__(self, *args: Any) -> None:
        args = tuple(map(_adopted, args))
        if not any(len(args) == len(signature) and all(map(_fits, args, signature)) for signature in self._signatures):
            types = ", ".join(str(_type_of(argument)) for argument in args)
            raise TypeError(f"No matching definition for argument type{'(s)'} {types}")  # Numba's own message
        self._kernel(*args)


@contextlib.contextmanager
def _nan_outside_domains() -> Iterator[None]:
    """Let functions of `math` return NaN outside their domain, as on a GPU: reinterpreted bytes may hold any value."""

    def lenient(function: Callable[..., float]) -> Callable[..., float]:
        def compute(*args: Any) -> float:
            try:
                return function(*args)
            except (ValueError, OverflowError):
                return math.nan

        return compute

    known = {name: getattr(math, name) for name in ("cos", "exp", "log", "pow", "sin", "sqrt", "tan")}
    try:
        vars(math).update({name: lenient(function) for name, function in known.items()})
        yield
    finally:
        vars(math).update(known)


def _reinterpreted(argument: Any, wanted: Any) -> Any:
    """Return an argument's bytes as an array of the wanted type, unless it would need more bytes than there are."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
    from numba.np.numpy_support import as_dtype

    if _fits(argument, wanted):
        return argument
    found = _type_of(argument)
    if getattr(found, "ndim", None) != getattr(wanted, "ndim", None):
        raise TypeError(f"This kernel was compiled for {wanted}, and gets {found}.")
    host, dtype = getattr(argument, "_ary", argument), as_dtype(wanted.dtype)
    like = np.empty(host.shape, dtype, order="F" if wanted.layout == "F" else "C")
    strides = host.strides if wanted.layout == "A" else like.strides
    needed, available = (
        item + sum((length - 1) * step for length, step in zip(host.shape, steps, strict=True))
        for item, steps in ((dtype.itemsize, strides), (host.itemsize, host.strides))
    )
    if host.size and needed > available:
        raise IndexError(
            f"This kernel was compiled for {wanted.dtype}, and gets {found.dtype}: it reads or writes past the end of "
            f"the array, which has {available:,} B of the {needed:,} B that it needs. A GPU does not report this."
        )
    interface = host.__array_interface__ | {"typestr": dtype.str, "descr": dtype.descr, "strides": strides}
    return FakeCUDAArray(np.asarray(SimpleNamespace(__array_interface__=interface, owner=host)))


def _type_of(argument: Any) -> Any:
    import numba
    from numba.cuda.simulator.args import ArgHint

    argument = argument.value if isinstance(argument, ArgHint) else argument
    return numba.typeof(argument._ary if hasattr(argument, "_ary") else argument)


def _fits(argument: Any, wanted: Any) -> bool:
    """Arrays must have the type and contiguity of the signature; numbers are converted."""
    found = _type_of(argument)
    if not hasattr(wanted, "ndim") or not hasattr(found, "ndim"):
        return hasattr(wanted, "ndim") == hasattr(found, "ndim")
    same = (found.dtype, found.ndim) == (wanted.dtype, wanted.ndim)
    return same and wanted.layout in ("A", found.layout)


def _complete(libdevice: Any, vectorizers: Any) -> None:
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

    compute.__name__, compute.__module__ = name, "numba.cuda.libdevice"  # by which the compiler finds its own
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
