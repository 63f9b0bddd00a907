"""Compile a submission's kernels before its turn, in a forked process that is then discarded.

The function is called on tensors without data. Each launch of a Triton kernel only compiles the kernel. An extension is
built and fails when it uses the GPU, which the forked process cannot do. The compiled code is on disk, where the first
real call finds it. All other effects of the call, except for files that it wrote, end with the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from grader.protocol.arena import Slot

_POLL_S = 0.005
_KILL_S = 5.0  # until killed processes are gone


def rehearse(
    function: Callable[..., Any], launches: Sequence[Sequence[Slot]], limit_s: float, driver: Any = None
) -> None:
    """Call `function` once per launch on tensors without data; an exception ends that call only.

    `driver` describes the GPU to Triton, by default as this process sees it. After `limit_s` the forked process and its
    compilers are killed; what was compiled by then is kept.
    """
    driver = driver or _Driver.of_this_process()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads that a fork does not copy: the child needs none of them
        child = os.fork()
    if child == 0:
        try:
            os.setsid()
            _call_without_data(function, launches, driver)
        finally:
            os._exit(0)
    ends, ended, status = time.monotonic() + limit_s, 0, 1
    with contextlib.suppress(ChildProcessError):  # another thread of the submission may have waited for the child
        while not ended and time.monotonic() < ends:
            time.sleep(_POLL_S)
            ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if not ended or status:
        _kill_session(child)
        _unlock()


def _kill_session(session: int) -> None:
    """Kill all processes of a session. Its leader's group is not enough: ninja gives each compiler its own group."""
    ends = time.monotonic() + _KILL_S
    while (alive := _alive(session)) and time.monotonic() < ends:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _alive(session: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, its = path.read_text(errors="replace").rpartition(") ")[2].split()[:4]
            if int(its) == session and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def _unlock() -> None:
    """Remove torch's locks on interrupted builds: the next build would wait for them forever."""
    folder = os.environ.get("TORCH_EXTENSIONS_DIR")
    for lock in Path(folder).rglob("lock") if folder else ():
        with contextlib.suppress(OSError):  # a submission may have made a folder with that name
            lock.unlink()


def _call_without_data(function: Callable[..., Any], launches: Sequence[Sequence[Slot]], driver: Any) -> None:
    """Run in the forked process, which cannot use its parent's CUDA context."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    _compile_only(driver)
    for launch in launches:
        with contextlib.suppress(BaseException), without_data():
            function(*(tensor_without_data(slot) for slot in launch))


def tensor_without_data(slot: Slot) -> Any:
    """Make a tensor without data. Its address is a multiple of 16, as in the judge's buffers."""
    import torch

    return torch.empty_strided(slot.shape, slot.strides, dtype=getattr(torch, slot.dtype), device="meta")


def without_data() -> Any:
    """Return a mode in which tensors that would be allocated on the GPU have no data."""
    import torch
    from torch.overrides import TorchFunctionMode

    on_gpu: Any = torch.Tensor
    answers = {on_gpu.device.__get__: torch.device("cuda", 0), on_gpu.is_cuda.__get__: True, on_gpu.get_device: 0}

    class WithoutData(TorchFunctionMode):
        def __torch_function__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if called in answers:
                return answers[called]
            if called is torch.Tensor.cuda:
                return args[0]
            if kwargs.get("device") is not None:
                kwargs["device"] = "meta"
            if called is torch.Tensor.to:
                args = ["meta" if isinstance(each, (str, int, torch.device)) else each for each in args]
            return called(*args, **kwargs)

    return WithoutData()


def _compile_only(driver: Any) -> None:
    """From now on, let a launch only compile the kernel, in every configuration of an autotuner."""
    import torch
    import triton.runtime.driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def compile_it(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        if driver.launcher is not None:  # up to 3.6 Triton compiles a C launcher per kernel
            with contextlib.suppress(Exception):
                driver.launcher(kernel.src, kernel.metadata)
        return kernel

    def compile_all(self: Any, *args: Any, grid: Any, warmup: bool = True, **kwargs: Any) -> None:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        for configuration in self.prune_configs(kwargs):
            with contextlib.suppress(Exception):  # some configurations do not fit the GPU
                self.fn.run(*args, grid=grid, warmup=True, **kwargs, **configuration.all_kwargs())

    JITFunction.run, Autotuner.run = compile_it, compile_all
    triton.runtime.driver.set_active(driver)
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda *_, **__: driver.properties
    torch.cuda.synchronize = lambda *_, **__: None


class _Driver:
    """The answers that Triton's driver gave before the process was forked."""

    def __init__(self, target: Any, properties: Any = None, of_triton: Any = None, launcher: Any = None) -> None:
        self.target, self.properties, self.launcher = target, properties, launcher
        self.utils = SimpleNamespace(get_device_properties=lambda device: of_triton)

    @classmethod
    def of_this_process(cls) -> _Driver:
        import torch
        from triton.runtime import driver

        known = driver.active.utils.get_device_properties(0)
        target, properties = driver.active.get_current_target(), torch.cuda.get_device_properties(0)
        return cls(target, properties, known, driver.active.launcher_cls)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self.target
