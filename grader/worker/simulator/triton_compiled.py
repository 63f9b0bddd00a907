"""Compile the Triton kernels of a submission for a GPU that is not here, from a process that interprets them.

A forked copy of the process turns its interpreted functions into compiled ones and calls the submission. Each launch
only compiles the kernel, in every configuration of an autotuner; the machine code itself is left out.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

from grader.protocol.arena import Slot
from grader.protocol.target import shared_memory_bytes, target
from grader.worker.failures import describe
from grader.worker.simulator.lacks import sentence
from grader.worker.toolchain import forked
from grader.worker.toolchain.machine_facts import kernel_facts
from grader.worker.toolchain.rehearsal import tensor_without_data, without_data

_MOST_ELEMENTS = 1 << 17  # of a tensor; compiling takes 2 s for these, and four times as long for twice as many
_TENSOR = re.compile(r"tensor<((?:\d+x)+)")
_MOST_THREADS = 1024  # of a program
_MOST_PROGRAMS = (2**31 - 1, 65_535, 65_535)  # along each axis of a grid
_MOST_FACTS = 100
_FILE = "submission.py"
_OUTSIDE = re.compile(r"Cannot call @triton\.jit'd outside|Did you forget to add @triton\.jit")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+>")
_CALLED = re.compile(r"Unsupported function referenced: <\S+ (?:\S+\.)?(\w+)")

_seen: list[dict[str, Any]] | None = None  # facts about the compiled launches, if wanted

_INTERPRETER = re.compile(r"/triton/(?:runtime/interpreter\.py|language/\w+\.py)$")
_LANGUAGE = ("/language/core.py", "/language/math.py", "/language/standard.py")
_OWN_ERRORS = (TypeError, AttributeError, NotImplementedError, KeyError)  # of the interpreter, perhaps

_kernels: set[str] = set()  # that were compiled in this process
_language: list[tuple[Any, dict[str, Any]]] = []  # modules and classes of triton.language, as they were


class Refused(Exception):
    """A GPU refuses a launch; the cause is the compiler's error."""


class _TooLong(Exception):
    """Compiling further would take long, and most of what can be refused has been looked at."""


def remember() -> None:
    """Keep `triton.language` as it is before the first launch: the interpreter exchanges its functions."""
    if not _language:
        modules = [module for name, module in sys.modules.items() if name.startswith("triton.language")]
        classes = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
        own = {id(each): each for each in classes if each.__module__.startswith("triton.language")}
        _language.extend((each, dict(vars(each))) for each in (*modules, *own.values()))


def start(function: Callable[..., Any], launches: Sequence[tuple[str, Sequence[Slot]]]) -> None:
    """Start to compile what `function` launches on tensors of these shapes, each with the name of its case.

    The name is "" for cases that run here too.
    """
    forked.add(lambda: _first_failure(function, launches, target()))


def facts(function: Callable[..., Any], launches: Sequence[tuple[str, Sequence[Slot]]], limit_s: float) -> list[Any]:
    """Return facts about the launches of `function` on tensors of these shapes, compiled in a forked process.

    Each is what `machine_facts.kernel_facts` finds, with the "case", the "line" of the launch, "programs", "threads",
    "stages", "shared" bytes and the "count" of such launches. There are none if the compiler cannot be used here, or
    takes longer than `limit_s`.
    """

    def work() -> dict[str, Any]:
        global _seen
        _seen = []
        become_compiler(target())
        for name, launch in launches:
            before = len(_seen)
            with contextlib.suppress(Exception), without_data():
                function(*map(tensor_without_data, launch))
            for each in _seen[before:]:
                each["case"] = name
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for each in _seen:
            into = found.setdefault((each["case"], each["line"], each["programs"], each["ptx"]), each | {"count": 0})
            into["count"] += 1
        known = {ptx: kernel_facts(ptx) for ptx in {each["ptx"] for each in list(found.values())[:_MOST_FACTS]}}
        return {"facts": [known[each.pop("ptx")][0] | each for each in list(found.values())[:_MOST_FACTS]]}

    answer = forked.Forked(work).answer(limit_s) or {}
    return list(answer.get("facts", ()))


def _first_failure(
    function: Callable[..., Any], launches: Sequence[tuple[str, Sequence[Slot]]], capability: int
) -> dict[str, Any]:
    try:
        become_compiler(capability)
    except Exception as error:
        return {"absent": f"Triton's compiler cannot be used here ({type(error).__name__}: {error})"}
    for name, launch in launches:
        try:
            with without_data():
                function(*map(tensor_without_data, launch))
        except Refused as refused:
            failure = _described(refused.__cause__ or refused, "compile", name)
            return {"failure": failure | {"line": failure["line"] or _line_of_launch(refused)}}
        except Exception as error:
            if _OUTSIDE.search(str(error)):
                return {"failure": _described(error, "exception", name)}
            # Anything else may come from the tensors, which hold no data.
    return {"kernels": sorted(_kernels)}


def not_interpreted(error: BaseException, limit_s: float) -> str:
    """Return the sentence if the interpreter fails in its own code, with a kernel that compiles for a GPU, or ""."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not isinstance(error, _OWN_ERRORS) or not frames or not _INTERPRETER.search(frames[-1].co_filename):
        return ""
    called = {code.co_name for code in frames if code.co_filename.endswith(_FILE)}
    found = forked.result(limit_s)
    if "failure" in found or not called.intersection(found["kernels"]):
        return ""
    names = [code.co_name for code in frames if code.co_filename.endswith(_LANGUAGE)]
    function = next((name for name in names if name not in ("wrapper", "check")), "")
    return sentence(f"`{function}`" if function else "code for this line of the kernel")


def become_compiler(capability: int) -> None:
    """Let each launch in this process compile the kernel, and raise `Refused` if it does not compile or fit.

    There is no way back.
    """
    import triton
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    for owner, before in _language:
        for name in vars(owner).keys() - before.keys():
            delattr(owner, name)
        for name, value in before.items():
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
    os.environ.pop("TRITON_INTERPRET", None)
    triton.knobs.runtime.interpret = False
    kind = _compiled_kind(InterpretedFunction, JITFunction)
    for function in [each for each in gc.get_objects() if type(each) is InterpretedFunction]:
        function.__class__ = kind
        JITFunction.__init__(function, function.fn, **function.kwargs)
        method = vars(triton.language.tensor).get(function.__name__)
        if any(cell.cell_contents is function for cell in getattr(method, "__closure__", None) or ()):
            setattr(triton.language.tensor, function.__name__, function)  # `x.sum()` is `sum(x)`
    driver.set_active(_Driver(capability, driver.active))
    _build_nothing()
    _leave_out_machine_code()
    run = JITFunction.run
    limit = shared_memory_bytes(capability)
    kind.run = lambda self, *args, **kwargs: _compile(run, self, limit, *args, **kwargs)
    Autotuner.run = _compile_all


def _compiled_kind(interpreted: type, jit: type) -> Any:
    """Return a class of compiled functions that an interpreted one can become, wherever it is referred to."""
    kept: dict[str, Any] = {}
    for owner in reversed(jit.__mro__[:-1]):
        kept |= {name: value for name, value in vars(owner).items() if name not in ("__dict__", "__weakref__")}
    return type("JITFunction", (interpreted, jit), {**kept, "__name__": ""})


class _Driver:
    """The part of a driver that compiling needs, and the pretend GPU's for what a submission asks."""

    def __init__(self, capability: int, pretend: Any) -> None:
        from triton.backends.compiler import GPUTarget

        self._target, self._pretend = GPUTarget("cuda", capability, 32), pretend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pretend, name)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self._target


def _build_nothing() -> None:
    """Refuse to build an extension: the process that runs the cases does so at the same time, in the same folder."""
    from torch.utils import cpp_extension

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("nothing but Triton's kernels is compiled here")

    cpp_extension._jit_compile = refuse  # type: ignore[assignment]


def _leave_out_machine_code() -> None:
    """Skip `ptxas`, and the hash of Triton's own files, which takes 1 s. The cache on disk gets a key of its own.

    Kernels with huge tensors are compiled only as far as that is fast.
    """
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.runtime import cache

    if hasattr(cache, "triton_key"):
        cache.triton_key = lambda: "compiled without machine code"
    CUDABackend.make_cubin = lambda *_: b""
    make_llir = CUDABackend.make_llir

    def make_small_llir(backend: Any, module: Any, *how: Any) -> Any:
        shapes = _TENSOR.findall(str(module))
        if max((prod(map(int, shape[:-1].split("x"))) for shape in shapes), default=0) > _MOST_ELEMENTS:
            raise _TooLong
        return make_llir(backend, module, *how)

    CUDABackend.make_llir = make_small_llir


def _compile(
    run: Callable[..., Any], kernel: Any, limit: int, *args: Any, grid: Any, warmup: bool, **named: Any
) -> Any:
    from triton.runtime.errors import OutOfResources

    if callable(grid):
        parameters = inspect.signature(kernel.fn).parameters  # not the options, such as `num_warps`
        grid = grid(dict(zip(parameters, args, strict=False)) | {k: v for k, v in named.items() if k in parameters})
    try:
        found = run(kernel, *args, grid=grid, warmup=True, **named)
        if found.metadata.shared > limit:
            raise OutOfResources(found.metadata.shared, limit, "shared memory")
        if (threads := 32 * found.metadata.num_warps) > _MOST_THREADS:
            raise OutOfResources(threads, _MOST_THREADS, "threads")
        if any(count > most for count, most in zip(grid or (), _MOST_PROGRAMS, strict=False)):
            raise RuntimeError(f"Triton Error [CUDA]: invalid argument: the grid is {tuple(grid)}")
    except _TooLong:
        return None
    except Exception as error:
        raise Refused from error
    _kernels.add(kernel.fn.__name__)
    if _seen is not None:
        line = next((each.lineno for each in reversed(traceback.extract_stack()) if each.filename.endswith(_FILE)), 0)
        launch = {"line": line, "programs": prod(grid or (1,)), "threads": 32 * found.metadata.num_warps}
        launch |= {"stages": found.metadata.num_stages, "shared": found.metadata.shared}
        _seen.append(launch | {"ptx": found.asm["ptx"]})
    return found


def _compile_all(tuner: Any, *args: Any, grid: Any, warmup: bool = True, **named: Any) -> Any:
    """Compile every configuration once, and the first for each launch.

    Like the autotuner, pass over configurations that do not fit, but not over all of them.
    """
    from triton.runtime.errors import OutOfResources

    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    done = vars(tuner).setdefault("compiled_before", set())
    found: list[Any] = []
    refused: Refused | None = None
    for configuration in tuner.prune_configs(named):
        if found and configuration in done:
            continue
        done.add(configuration)
        constants = configuration.all_kwargs()
        if configuration.pre_hook is not None:
            configuration.pre_hook({**tuner.nargs, **named, **constants})
        try:
            found.append(tuner.fn.run(*args, grid=grid, warmup=True, **named, **constants))
        except Refused as error:
            if not isinstance(error.__cause__, OutOfResources):
                raise
            refused = error
    if refused is not None and not found:
        raise refused
    return found[0] if found else None


def _described(error: BaseException, kind: str, case: str) -> dict[str, Any]:
    """Describe the innermost error of the compiler: a kernel's helper is compiled within the kernel."""
    while type(error.__cause__).__name__ == "CompilationError":
        assert error.__cause__ is not None
        error = error.__cause__
    found = describe(error, Path("submission.py")) | {"kind": kind}
    found["message"] = _ADDRESS.sub(">", found["message"])
    if called := _CALLED.search(found["message"]):
        found["line"] = _line_of_call(called[1]) or found["line"]
    if case:
        found["message"] += f" (in the case “{case}”, which a GPU runs)"
    return found


def _line_of_launch(refused: Refused) -> int | None:
    """Return the line that launches the kernel, for an error that names none in it."""
    frames = traceback.extract_tb(refused.__traceback__)
    return next((each.lineno for each in reversed(frames) if Path(each.filename).name == "submission.py"), None)


def _line_of_call(name: str) -> int | None:
    """Return the first line in a kernel of the submission that calls `name`."""
    from triton.runtime.jit import JITFunction

    call = re.compile(rf"(?<![\w.])(?:\w+\.)*{name}\(")
    for kernel in [each for each in gc.get_objects() if issubclass(type(each), JITFunction)]:
        if Path(kernel.fn.__code__.co_filename).name == "submission.py":
            for number, text in enumerate(kernel.raw_src):
                if call.search(text):
                    return int(kernel.starting_line_number) + number
    return None
