"""Answers to what Triton code asks of a GPU and its driver: properties, `warmup`, libdevice, `is_cuda`."""

from __future__ import annotations

import functools
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from grader.protocol.target import shared_memory_bytes, target
from grader.worker.simulator.lacks import NotSimulated

MULTIPROCESSORS = 132  # as an H100 has: a kernel must also work with many programs
_SUBMISSION = "submission.py"


def install() -> None:
    """Answer as the GPU that kernels are compiled for would. Tensors stay on the CPU. A second call does nothing."""
    import torch
    import triton.runtime.driver
    from triton.runtime import interpreter

    cuda: Any = torch.cuda
    function: Any = interpreter.InterpretedFunction
    if hasattr(function.run, "__wrapped__"):
        return
    cuda.get_device_properties = lambda device=None: _properties()
    cuda.get_device_capability = lambda device=None: divmod(target(), 10)
    cuda.get_device_name = lambda device=None: _properties().name
    cuda.current_device = lambda: 0
    triton.runtime.driver.set_active(_driver())
    function.run = _compiled(function.run)
    _offer_libdevice()
    torch.Tensor.is_cuda = property(_is_cuda)  # type: ignore[assignment]


def _is_cuda(tensor: Any) -> bool:
    """Return True to a submission, which may insist on it. Libraries learn where the memory is."""
    from grader.worker.simulator.devices import CPU, device_of

    asks = sys._getframe(1).f_code.co_filename.rpartition("/")[2]
    return asks == _SUBMISSION and device_of(tensor) != CPU


_OF_A_DEVICE = {"gcnArchName", "uuid", "pci_bus_id", "pci_device_id", "pci_domain_id"}
_OF_A_DRIVER = {"launcher_cls", "map_python_to_cpp_type"}
_OF_ITS_UTILS = {"load_binary", "launch", "set_printf_fifo_size", "cuOccupancyMaxActiveClusters"}


class Answers(SimpleNamespace):
    """A pretend object of a GPU's libraries. Other attributes of the real one are not simulated."""

    def __init__(self, of: str, others: set[str], /, **known: Any) -> None:
        super().__init__(**known)
        self._called, self._others = of, others

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._others:
            raise NotSimulated(f"`{self._called}.{name}`")
        raise AttributeError(f"{self._called} has no attribute {name!r}")


def _properties() -> Any:
    major, minor = divmod(target(), 10)
    return Answers(
        "torch.cuda.get_device_properties(…)", _OF_A_DEVICE,
        name="Simulator", major=major, minor=minor, multi_processor_count=MULTIPROCESSORS,
        total_memory=80 << 30, warp_size=32, max_threads_per_multi_processor=2048, regs_per_multiprocessor=1 << 16,
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=shared_memory_bytes(target()),
        shared_memory_per_multiprocessor=228 << 10, L2_cache_size=50 << 20, clock_rate=1_980_000,
        max_threads_per_block=1024, is_integrated=0, is_multi_gpu_board=0, memory_clock_rate=2_619_000,
        memory_bus_width=5120,
    )  # fmt: skip


def _driver() -> Any:
    import torch
    from triton.backends.compiler import GPUTarget
    from triton.testing import do_bench

    known = {
        "multiprocessor_count": MULTIPROCESSORS, "max_num_regs": 1 << 16,
        "max_shared_mem": shared_memory_bytes(target()),
        "warpSize": 32, "sm_clock_rate": 1_980_000, "mem_clock_rate": 2_619_000, "mem_bus_width": 5120,
    }  # fmt: skip
    return Answers(
        "triton.runtime.driver.active", _OF_A_DRIVER,
        utils=Answers(
            "triton.runtime.driver.active.utils", _OF_ITS_UTILS, get_device_properties=lambda device=None: known
        ),
        get_benchmarker=lambda: do_bench, is_active=lambda: True,
        get_active_torch_device=lambda: torch.device("cuda", 0),
        get_current_device=lambda: 0,
        get_current_stream=lambda device=None: 0,
        get_current_target=lambda: GPUTarget("cuda", target(), 32),
        get_device_capability=lambda device=None: divmod(target(), 10),
        get_device_interface=lambda: torch.cuda,  # with the events of `torch_gpu`
        get_empty_cache_for_benchmark=lambda: None,
        clear_cache=lambda cache: None,
    )  # fmt: skip


class Compiled:
    """The result of `kernel.warmup` and of a launch: resources as of a small kernel, and the kernel itself."""

    n_regs, n_spills = 32, 0

    def __init__(self, kernel: Any, named: dict[str, Any]) -> None:
        self._kernel, self._named = kernel, named
        warps, stages = named.get("num_warps", 4), named.get("num_stages", 3)
        self.metadata = SimpleNamespace(shared=1024, num_warps=warps, num_stages=stages, name=kernel.__name__)

    def _init_handles(self) -> None:
        """Do nothing: there is no code to load."""

    def __getitem__(self, grid: Any) -> Any:
        """Launch with the constants that it was compiled for, unless the launch passes them too."""

        def launch(*args: Any, **kwargs: Any) -> Any:
            names = self._kernel.arg_names[len(args) :]
            known = {name: self._named[name] for name in names if name in self._named}
            return self._kernel.run(*args, grid=grid, warmup=False, **{**known, **kwargs})

        return launch


def _compiled(original: Any) -> Any:
    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Compiled:
        original(self, *args, grid=grid, warmup=warmup, **kwargs)
        return Compiled(self, dict(zip(self.arg_names, args, strict=False)) | kwargs)

    return run


def _offer_libdevice() -> None:
    """Let the functions of both `libdevice` modules work in the interpreter, as far as NumPy has them.

    They stay built-in functions for a process that goes on to compile.
    """
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as of_cuda
    from triton.runtime import interpreter

    def bound(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, _semantic: Any = interpreter.interpreter_semantic, **named: Any) -> Any:
            return function(*args, **named, _semantic=_semantic)

        return call

    for name, function in list(vars(of_cuda).items()):
        if callable(function) and hasattr(function, "__triton_builtin__"):
            setattr(of_cuda, name, bound(function))
            setattr(libdevice, name, getattr(of_cuda, name))

    def create_extern_elementwise(
        self: Any, library: str, path: str, symbol: str, args: Any, kind: Any, pure: bool
    ) -> Any:
        function = _libdevice(symbol)
        with np.errstate(all="ignore"):
            result = function(*(each.data for each in args))
        return interpreter.TensorHandle(np.asarray(result, interpreter._get_np_dtype(kind)), kind.scalar)

    builder: Any = interpreter.InterpreterBuilder
    builder.create_extern_elementwise = create_extern_elementwise


_NAMES = {  # libdevice's names that NumPy has under another
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "finite": "isfinite", "fdiv": "divide", "pow": "power", "powi": "power", "abs": "abs",
    "nearbyint": "rint", "llabs": "abs", "fsub": "subtract", "fadd": "add", "fmul": "multiply", "dadd": "add",
    "dmul": "multiply", "ddiv": "divide", "fsqrt": "sqrt", "dsqrt": "sqrt", "max": "maximum", "min": "minimum",
}  # fmt: skip
_SAME = {
    "cbrt", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "fmax", "fmin", "fmod", "hypot",
    "isinf", "isnan", "ldexp", "log", "log10", "log1p", "log2", "nextafter", "rint", "signbit", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
}  # fmt: skip
_OWN: dict[str, Any] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "frsqrt": lambda x: 1 / np.sqrt(x),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "fma": lambda x, y, z: x * y + z,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
    "saturate": lambda x: np.clip(x, 0, 1),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fdividef": lambda x, y: x / y,
    "float_as_int": lambda x: x.view(np.int32),
    "int_as_float": lambda x: x.view(np.float32),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "tgamma": np.vectorize(math.gamma, otypes=[np.float64]),
    "lgamma": np.vectorize(math.lgamma, otypes=[np.float64]),
    "popc": np.vectorize(lambda x: int(x & 0xFFFFFFFF).bit_count(), otypes=[np.int32]),
    "clz": np.vectorize(lambda x: 32 - int(x & 0xFFFFFFFF).bit_length(), otypes=[np.int32]),
}


def _libdevice(symbol: str) -> Any:
    """Return NumPy's function for a symbol such as `__nv_fast_expf`. NotSimulated: there is none."""
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    for suffix in ("", "f", "d", "_rn", "f_rn"):
        short = name.removesuffix(suffix)
        if short in _OWN:
            return _OWN[short]
        if short in _SAME or short in _NAMES:
            return getattr(np, _NAMES.get(short, short))
    raise NotSimulated(f"libdevice function `{symbol}`")
