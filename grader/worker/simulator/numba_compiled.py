"""Compile Numba's kernels for a GPU that is not here, from a process in which Numba simulates them.

A forked copy of the process exchanges the simulator for the compiler, in the function and in what it refers to.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import os
import re
import sys
import traceback
import zlib
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from grader.protocol.target import target
from grader.worker.simulator import tally
from grader.worker.toolchain import forked
from grader.worker.toolchain.machine_facts import kernel_facts
from grader.worker.toolchain.nvjitlink import assembled
from grader.worker.toolchain.nvrtc import ptx_facts

_MOST_CODE = 1 << 15  # characters: an answer that is too long would be lost, and the facts with it
_OPTIONS = ("debug", "fastmath", "forceinline", "launch_bounds", "lineinfo", "opt")  # of `numba.cuda.compile`
_MOST_REGISTERS = 255  # of a thread: launch bounds limit them further, but by how much depends on the GPU
_RAISED = re.compile(r"\.? Raised from \S+ \(\d+\)$")
_ERRORS = ("NumbaError", "UnsupportedBytecodeError")
_LINE = re.compile(r'submission\.py(?:", line | \()(\d+)')
_CALL = re.compile(r"found for signature:\s+>>> (.+)")
_PLAIN = re.compile(r"\x1b\[[\d;]*m| at 0x[0-9a-f]+")
_REASONS = re.compile(
    r"^(?:No implementation of function|Unknown attribute|Invalid use of|Cannot unify|Untyped global name|"
    r"Unsupported|Undecided|use of|.*is not supported|CUDA kernel must|Use of unsupported|The use of|name ').*",
    re.MULTILINE,
)

_started: set[Any] = set()


def start(function: Any, signature: tuple[Any, ...], options: dict[str, Any], again: bool) -> None:
    """Start to compile a kernel for these argument types, if it was not before.

    If it was, but a GPU would compile it `again`, that is a fact about it.
    """
    if again:
        tally.host("builds", function.__name__)
    values = tuple(id(cell.cell_contents) for cell in function.__closure__ or () if _filled(cell))
    given = {name: value for name, value in options.items() if name in _OPTIONS}
    key = (function.__code__, values, tuple(map(str, signature)), str(given))
    if key not in _started:
        _started.add(key)
        cap = options.get("max_registers") or (_MOST_REGISTERS if options.get("launch_bounds") else 0)
        forked.add(lambda: _compiled(function, signature, given, cap))
    elif again:
        forked.facts.append({"name": function.__name__, "compiled_again": True})


def _compiled(function: Any, signature: tuple[Any, ...], options: dict[str, Any], cap: int) -> dict[str, Any]:
    import warnings

    warnings.simplefilter("ignore")
    try:
        exchange = _Exchange()
        kernel = exchange.function(function)
        import numba
    except Exception as error:
        return {"absent": f"Numba's compiler cannot be used here ({type(error).__name__}: {error})"}
    try:
        capability = divmod(target(), 10)
        ptx, _ = exchange.real.compile(
            kernel, numba.void(*map(_mutable, signature)), cc=capability, device=False, abi="numba", **options
        )
    except Exception as error:
        text = _PLAIN.sub("", str(error))
        no_ufunc = isinstance(error, KeyError) and type(error.args[0]).__name__ == "ufunc"
        if not no_ufunc and not isinstance(error, _errors(exchange.real)):
            return {"absent": f"Numba's compiler ended with {type(error).__name__}: {text[:100]}"}
        called = _CALL.search(text)
        reason = _REASONS.search(text) or re.match(r".*", text.strip())
        message = _RAISED.sub("", f"{reason[0] if reason else text} {called[1] if called else ''}".strip())
        line = _line(error, text) or function.__code__.co_firstlineno
        return {"failure": {"kind": "compile", "message": message, "line": line, "detail": text[:4000]}}
    more = {"capped": cap, "double": any("array(float64" in str(kind) for kind in signature)}
    found: dict[str, Any] = {"facts": [fact | more for fact in ptx_facts(ptx)]}
    text = base64.b64encode(zlib.compress(ptx.encode())).decode()
    return found | ({"code": {"ptx": text, **more}} if len(text) <= _MOST_CODE else {})


def facts(code: dict[str, Any]) -> list[dict[str, Any]]:
    """Return `machine_facts.kernel_facts` of a "code" that `forked.result` has."""
    ptx, log = zlib.decompress(base64.b64decode(code["ptx"])).decode(), ""
    with contextlib.suppress(ImportError, RuntimeError):
        log = assembled(ptx, target(), code["capped"])[1]
    return [fact | {"double": code["double"]} for fact in kernel_facts(ptx, log)]


def _line(error: Exception, text: str) -> int | None:
    """Return the submission's line of an error: by its text, or by what the compiler was at, the innermost first."""
    if lines := _LINE.findall(text):
        return int(lines[-1])
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in list(frame.f_locals.values()):
            with contextlib.suppress(Exception):  # some values of Numba raise a KeyError for attributes they lack
                place = value.loc
                if str(place.filename).endswith("submission.py"):
                    found = int(place.line)
    return found


def _errors(real: Any) -> tuple[type, ...]:
    """Return the classes of errors that Numba reports about a kernel."""
    found: list[type] = []
    for name in ("numba.core.errors", "numba.cuda.core.errors", "numba.cuda.errors"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            found += [getattr(module, kind) for kind in _ERRORS if hasattr(module, kind)]
    return tuple(found)


def _mutable(kind: Any) -> Any:
    """Return the type of an array on a device: there, the judge's read-only memory is like any other."""
    return kind.copy(readonly=False) if getattr(kind, "mutable", True) is False and hasattr(kind, "layout") else kind


def _filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


@dataclass
class _Exchange:
    """Numba's compiler in place of its simulator, once in a process: there is no way back."""

    names: dict[int, str] = field(default_factory=dict)  # of what the simulated `numba.cuda` holds, by identity
    made: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import numba

        self.names = {id(value): name for name, value in vars(sys.modules["numba.cuda"]).items()}
        vars(numba).pop("cuda", None)  # `from numba import cuda` would find the simulator there
        for name in [name for name in sys.modules if name.startswith(("numba.cuda", "numba_cuda"))]:
            del sys.modules[name]
        os.environ["NUMBA_ENABLE_CUDASIM"] = "0"
        numba.config.ENABLE_CUDASIM = 0
        self.real: Any = importlib.import_module("numba.cuda")
        device = SimpleNamespace(compute_capability=divmod(target(), 10))
        dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
        dispatcher.get_current_device = lambda: device  # it asks for device functions

    def function(self, function: Any) -> Any:
        """Return the function with the compiler's `cuda` in its globals and its closure."""
        if id(function) not in self.made:
            names = {*function.__code__.co_names, *_inner_names(function.__code__)}
            space = dict(function.__globals__)
            made = FunctionType(function.__code__, space, function.__name__, function.__defaults__,
                                tuple(CellType(self.value(cell.cell_contents)) if _filled(cell) else cell
                                      for cell in function.__closure__ or ()))  # fmt: skip
            made.__kwdefaults__, made.__module__ = function.__kwdefaults__, function.__module__
            self.made[id(function)] = made
            space.update({name: self.value(space[name]) for name in names if name in space})
        return self.made[id(function)]

    def value(self, value: Any) -> Any:
        """Return the compiler's counterpart of a value of the simulator, or the value itself."""
        kernel = getattr(value, "_kernel", value)
        if type(kernel).__name__ == "FakeCUDAKernel":
            if id(kernel) not in self.made:
                self.made[id(kernel)] = self.real.jit(device=True)(self.function(kernel.fn))
            return self.made[id(kernel)]
        if isinstance(value, ModuleType) and value.__name__.startswith("numba.cuda"):
            return importlib.import_module(value.__name__)
        home = str(getattr(value, "__module__", type(value).__module__) or "")
        if isinstance(value, FunctionType) and home == "numba.cuda.libdevice":
            return getattr(importlib.import_module(home), value.__name__)
        of_simulator = home.startswith("numba.cuda.simulator")
        if id(value) in self.names and (of_simulator or type(value).__module__.startswith("numba.cuda.simulator")):
            return getattr(self.real, self.names[id(value)], value)
        return value


def _inner_names(code: Any) -> set[str]:
    inner = [each for each in code.co_consts if hasattr(each, "co_names")]
    return {name for each in inner for name in (*each.co_names, *_inner_names(each))}
