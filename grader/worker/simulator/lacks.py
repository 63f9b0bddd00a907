"""Tell valid code that the simulator does not have from a learner's mistake, by the error that it ends in.

A name counts as CUDA's if `cuda_names.txt` lists it and no header of the simulator has it. A kernel that needs such a
name is not judged here; a name that CUDA does not know either is a compile error like any other. Numba's names and
what Triton's interpreter does not interpret are treated alike.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import linecache
import os
import re
import subprocess
import traceback
from pathlib import Path
from types import FrameType

from grader.worker.simulator.cuda_source import INCLUDE
from grader.worker.simulator.header_build import compiler

_HERE = Path(__file__).parent
_OF_TORCH = ("cuda",)  # the folder of the headers that need PyTorch's
_LIMIT_S = 30
_SENTENCE = "The simulator has no {}; on a GPU it will be judged; this says nothing about your work."
_SAID = re.compile(re.escape(_SENTENCE).replace(r"\{\}", r"[^;\n]{1,300}"))
_NO_COMPILER = re.compile(r"(?P<tool>[cg]\+\+): (?:command )?not found|(?P<ninja>Ninja) is required")
_LINE = re.compile(r"\(line (\d+)\)")  # in the sentence, of a kernel that ran

_ERROR = re.compile(r"\berror: (?P<text>.*)(?:\n\s*\d+ \| (?P<code>.*))?")
_VARIABLE = "variable or field"  # a parameter of an unknown type makes g++ say first that the kernel is a variable
_HEADER = re.compile(r"(\S+): No such file or directory")
_QUOTED = re.compile(r"[‘'](?:[^’'\n]*)[’']")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MEMBER = re.compile(
    r"[‘'](?P<a>\w+)[’'] is not a member of|[‘'](?P<b>\w+)[’'] in namespace [‘']cub[’']"
    r"|[‘']cub::(?P<c>\w+)[’'] has not been declared"
    r"|[‘'][^’']*\b(?:cub::|cooperative_groups::|cuda[A-Z])[^\n]* has no member named [‘'](?P<d>\w+)"
)
_OF_TORCHS_NAMESPACE = re.compile(
    r"[‘'](?P<a>\w+)[’'] is not a member of [‘'](?:at|c10)::cuda[’']"
    r"|[‘'][^’']*\b(?:at|c10)::cuda::[^’']*[’'] has no member named [‘'](?P<b>\w+)"
)
_OF_NUMBA = re.compile(
    r"(?:'FakeCUDAModule' object|module 'numba\.cuda') has no attribute '((?:shfl|shfl_up|shfl_down|shfl_xor|all|any|eq"
    r"|ballot|match_any|match_all)_sync|syncwarp|activemask|lanemask_lt|nanosleep|libdevice|cache_hints|ld(?:ca|cg|cs|cv|lu)"
    r"|st(?:cg|cs|wb|wt)|mapped|mapped_array_like|managed_array|event_elapsed_time|from_cuda_array_interface|is_cuda_array"
    r"|literal_unroll|open_ipc_array|profile_start|profile_stop|profiling|set_memory_manager|extending)'"
)
_OF_NUMBAS_OBJECTS = re.compile(
    r"'(?:FakeCUDAKernel' object has no attribute '(?P<kernel>inspect_\w+|get_\w+_per_(?:thread|block)"
    r"|get_const_mem_size|get_call_template|signatures|nopython_signatures|stats|compile|compile_device|specialize|specialized)"
    r"|FakeCUDADevice' object has no attribute '(?P<device>[A-Z][A-Z_]+|uuid|id|supports_\w+))'"
)
_CUPYS = {  # what CuPy has and its replacement does not, by module
    "cupy": """ElementwiseKernel ReductionKernel fuse get_default_memory_pool get_default_pinned_memory_pool
        is_available show_config memoize clear_memo save load savetxt vectorize fromfile testing cublas""",
    "cupy.cuda": """MemoryPool MemoryAsyncPool PinnedMemoryPool MemoryPointer Memory BaseMemory UnownedMemory
        ManagedMemory alloc alloc_pinned_memory malloc_managed malloc_async set_allocator using_allocator
        set_pinned_memory_allocator PythonFunctionAllocator Graph texture nccl cub cufft cublas curand cusolver
        cusparse nvrtc thrust profile profiler memory_hooks memory stream device get_cuda_path get_nvcc_path""",
    "cupy.cuda.runtime": """malloc free memcpy memcpyAsync memset memsetAsync hostAlloc freeHost mallocManaged
        mallocAsync freeAsync deviceGetAttribute driverGetVersion runtimeGetVersion memGetInfo setDevice getLastError
        streamCreate streamSynchronize streamDestroy streamBeginCapture streamEndCapture eventCreate eventRecord
        eventSynchronize eventElapsedTime eventDestroy launchHostFunc deviceGetLimit deviceSetLimit profilerStart
        profilerStop memPrefetchAsync memAdvise memcpyHostToDevice memcpyDeviceToHost memcpyDeviceToDevice""",
}
_OF_CUPY = re.compile(r"module '(?P<module>cupy[\w.]*)' has no attribute '(?P<name>\w+)'")
_OF_A_KERNEL = re.compile(
    r"'RawModule' object has no attribute '(get_global|get_texref)'|^'(\w+)' is known only for a kernel"
)
_CUPYX = re.compile(r"^No module named '(cupyx[\w.]*)'")
_OF_TORCH_CUDA = re.compile(r"/torch/cuda/\w+\.py$")
_CLASS_OF_TORCH = re.compile(r"^torch\.(cuda\.\w+) requires CUDA support")
_DUMMY_OF_TORCH = re.compile(r"^Tried to instantiate dummy base class (\w+)|^type (torch\.cuda\.\w+) not available")
_NO_GPU = re.compile(
    r"not compiled with CUDA|no NVIDIA driver|no CUDA-capable device|without ATen_cuda library"
    r"|Cannot access accelerator device|requires a CUDA or other accelerator|arguments from the 'CUDA' backend"
    r"|not linked with support for cuda|CUDA driver version is insufficient|re-initialize CUDA in forked subprocess"
)
_DRIVER = re.compile(r"is an NVIDIA driver library")  # of cuda.bindings
_ASKS = re.compile(r"\b(?:is_available|device_count)\(")
_BUILDER = re.compile(r"^'InterpreterBuilder' object has no attribute '")
_CORE, _INTERPRETER = "/triton/language/core.py", "triton/runtime/interpreter.py"
_FUNCTIONS_OF_GPUS = "triton.language.extra."
_HEADERS_OF_CUDA = re.compile(
    r"(?:cub|cupy|thrust|cuda|cooperative_groups|nv|nvtx3|crt)/[\w./]+|(?:cu|nv)(?:blas|fft|rand|solver|sparse|tensor|dnn|jpeg)\w*\.h"
    r"|cuda_(?:fp16|bf16|fp8|fp6|fp4|pipeline|pipeline_primitives|awbarrier|awbarrier_primitives|device_runtime_api"
    r"|occupancy|profiler_api|stdint|gl_interop|egl_interop)\.h"
    r"|(?:cooperative_groups|mma|cuComplex|cudaProfiler|cudaTypedefs|library_types|nvrtc|nvml|builtin_types"
    r"|channel_descriptor|common_functions|math_functions|driver_types|driver_functions|device_types|device_functions"
    r"|device_atomic_functions|device_double_functions|host_defines|host_config|surface_types|texture_types"
    r"|(?:surface|texture)_indirect_functions|sm_\d\d_(?:intrinsics|atomic_functions))\.h"
    r"|(?:ATen|c10|torch)/\S*\bcuda/\S+"
)


class NotSimulated(RuntimeError):
    """The submission needs what CUDA has and the simulator does not."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(f"{place}{sentence(what)}")


def sentence(what: str) -> str:
    """Return the report's sentence; `what` is a noun without an article, such as "header `mma.h`"."""
    return _SENTENCE.format(what)


def said_in(text: str) -> tuple[str, int | None] | None:
    """Return the sentence in an error's text, and the line that it names, or None if the text has no such sentence."""
    if missing := _NO_COMPILER.search(text):
        tool = missing["tool"] or "ninja"
        return f"This machine has no `{tool}`, which compiles CUDA C++; this says nothing about your work.", None
    found = _SAID.search(text)
    if found is None:
        return None
    line = _LINE.search(found[0])
    return found[0], int(line[1]) if line else None


def said_by(error: BaseException) -> tuple[str, None] | None:
    """Return the sentence for an exception of torch.cuda, CuPy, Numba's simulator or Triton's interpreter."""
    if os.environ.get("TRITON_INTERPRET") != "1":  # this worker is on a GPU
        return None
    launched = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
    if any(type(each).__name__ == "GluonJITFunction" for each in launched):  # Triton's interpreter has no Gluon
        return sentence("Gluon"), None
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, AttributeError) and _is_of_aggregate(cause):
        return sentence("method of an `_aggregate`"), None
    if of_numba := _OF_NUMBA.search(str(error)):
        return sentence(f"`cuda.{of_numba[1]}`"), None
    if of_numba := _OF_NUMBAS_OBJECTS.search(str(error)):
        return sentence(f"`{of_numba['kernel'] or of_numba['device']}`"), None
    if of_cupy := _of_cupy(str(error)):
        return sentence(of_cupy), None
    if of_torch := _CLASS_OF_TORCH.search(str(error)):
        return sentence(f"`torch.{of_torch[1]}`"), None
    if dummy := _DUMMY_OF_TORCH.search(str(error)):
        return sentence(f"`{dummy[2] or f'torch.cuda.{dummy[1]}'}`"), None
    if _DRIVER.search(str(cause)):
        return sentence("NVIDIA driver for `cuda.bindings`"), None
    places = list(traceback.walk_tb(cause.__traceback__))
    frames = [frame for frame, _ in places]
    if not frames:
        return None
    if Path(frames[-1].f_code.co_filename).name == "submission.py" and _stops_without_a_gpu(*places[-1]):
        return sentence("GPU, so `torch.cuda.is_available()` is false"), None
    entered = next((frame.f_code for frame in frames if _OF_TORCH_CUDA.search(frame.f_code.co_filename)), None)
    if entered is not None and (entered.co_name == "_compile_kernel" or _NO_GPU.search(str(cause))):
        name = entered.co_qualname.partition(".")[0]
        return sentence("GPU for a tensor on `cuda`" if name == "_lazy_init" else f"`torch.cuda.{name}`"), None
    if _NO_GPU.search(str(cause)):
        return sentence("GPU for this call of torch"), None
    code, function = frames[-1].f_code, frames[-1].f_locals.get("fn")
    if _BUILDER.search(str(cause)):
        names = [each.f_code.co_qualname for each in frames if each.f_code.co_filename.endswith(_CORE)]
        called = next((name for name in names if "wrapper" not in name), "function of Triton")
        return sentence(f"`{called}`"), None
    if isinstance(cause, NotImplementedError) and code.co_filename.endswith(_INTERPRETER):
        return sentence(f"`{code.co_name.removeprefix('create_')}`"), None
    if str(getattr(function, "__module__", "")).startswith(_FUNCTIONS_OF_GPUS):  # Triton wants its compiler for them
        return sentence(f"`{getattr(function, '__name__', 'function of a GPU')}`"), None
    return None


def _is_of_aggregate(error: AttributeError) -> bool:
    """Whether the learner's class has what its Triton aggregate does not: the interpreter leaves out the methods."""
    kind = error.obj if isinstance(error.obj, type) else type(error.obj)
    made = getattr(kind, "__new__", None)
    if not getattr(kind, "__triton_aggregate__", False) or not inspect.isfunction(made):
        return False
    return hasattr(inspect.getclosurevars(made).nonlocals.get("cls"), error.name or "")


def _stops_without_a_gpu(frame: FrameType, line: int) -> bool:
    """Whether this line of a submission raises because the submission has asked if there is a GPU."""
    text = "".join(linecache.getlines(frame.f_code.co_filename))
    for node in ast.walk(ast.parse(text)):
        stops = (
            [node] if isinstance(node, ast.Assert) else getattr(node, "body", []) if isinstance(node, ast.If) else []
        )
        if any(
            isinstance(each, (ast.Assert, ast.Raise)) and each.lineno <= line <= (each.end_lineno or 0)
            for each in stops
        ):
            return _ASKS.search(ast.unparse(node.test)) is not None  # type: ignore[attr-defined]
    return False


def _of_cupy(text: str) -> str:
    """Return what of CuPy an exception's text says is missing, or ""."""
    if (found := _OF_CUPY.search(text)) and found["name"] in _CUPYS.get(found["module"], "").split():
        return f"`{found['module']}.{found['name']}`"
    if found := _OF_A_KERNEL.search(text):
        return f"`{found[1] or found[2]}`"
    return f"package `{found[1]}`" if (found := _CUPYX.search(text)) else ""


def lacking(log: str) -> str:
    """Return what of CUDA the first error in a compiler's output asks for, for `sentence`, or "" for another error."""
    for error in _ERROR.finditer(log):
        what = _lacking(error["text"], error["code"] or "")
        if what or not error["text"].startswith(_VARIABLE):
            return what
    return ""


def _lacking(text: str, code: str) -> str:
    if header := _HEADER.search(text):
        return f"header `{header[1]}`" if is_of_cuda(header) else ""
    if of_torch := _OF_TORCHS_NAMESPACE.search(text):
        name = of_torch["a"] or of_torch["b"]
        return f"`{name}`" if name in _known_to_torch() else ""
    names, members = _known_to_cuda()
    if (member := _MEMBER.search(text)) and (name := next(filter(None, member.groups()))) in members:
        return f"`{name}`"
    quoted = _WORD.findall(" ".join(_QUOTED.findall(text)))
    return next((f"`{word}`" for word in (*quoted, *_WORD.findall(code)) if word in names), "")


def is_of_cuda(header: re.Match[str] | None) -> bool:
    """Whether the match's first group names a header that comes with CUDA, or with PyTorch or CuPy for it."""
    return header is not None and _HEADERS_OF_CUDA.fullmatch(header[1]) is not None


@functools.cache
def _known_to_cuda() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that only CUDA has, and the members that it has."""
    text = re.sub(r"#.*\n", "", (_HERE / "cuda_names.txt").read_text(encoding="utf-8"))
    names, members = (frozenset(part.split()) for part in text.split("\n\n"))
    own = _own_names()
    return names - own, members - own


@functools.cache
def _known_to_torch() -> frozenset[str]:
    """Return the words of torch's headers for CUDA, without comments."""
    torch = importlib.util.find_spec("torch")
    include = Path(torch.origin).parent / "include" if torch is not None and torch.origin else _HERE
    headers = [path for part in ("ATen/cuda", "c10/cuda") for path in (include / part).glob("*.h")]
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in headers)
    return frozenset(word for each in texts for word in _WORD.findall(re.sub(r"//.*|/\*(?s:.*?)\*/", "", each)))


def _own_names() -> frozenset[str]:
    """Return the words of the simulator's headers after the preprocessor, because macros make many of the names."""
    headers = [path.relative_to(INCLUDE) for path in INCLUDE.rglob("*.*h") if path.parts[-2] not in _OF_TORCH]
    source = "".join(f'#include "{header}"\n' for header in sorted(headers))
    command = [*compiler(), "-E", "-dD", "-std=c++20", f"-I{INCLUDE}", "-x", "c++", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
    return frozenset(_WORD.findall(re.sub(r"^#\s*\d+ .*|\"[^\"\n]*\"", "", done.stdout, flags=re.MULTILINE)))
