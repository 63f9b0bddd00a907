"""Compile ahead of a submission's turn what it compiles when it is called, in a process that is thrown away.

The function is called on tensors without data. Each launch of a Triton kernel compiles it and ends there; an extension
is built, and ends where it wants the GPU, which this process cannot use. What was compiled lies on disk, where the
first real call finds it. What else the function did, but for files that it wrote, is gone with the process: a buffer
that it keeps, a count, a line that it printed.
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

_LOOK_S = 0.005
_KILL_S = 5.0  # for what was killed to be gone


def rehearse(
    function: Callable[..., Any], launches: Sequence[Sequence[Slot]], limit_s: float, driver: Any = None
) -> None:
    """Calls `function` once for the tensors of each launch; an error of one call ends that call.

    `driver`: what Triton is told of the GPU, by default what this process knows of it. The process is killed after
    `limit_s`, and its compilers with it: what it has compiled by then is kept.
    """
    driver = driver or _Driver.of_this_process()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that a fork leaves behind: the child calls for none of theirs
        child = os.fork()
    if child == 0:
        try:
            os.setsid()
            _quietly(function, launches, driver)
        finally:
            os._exit(0)
    ends, ended, status = time.monotonic() + limit_s, 0, 1
    with contextlib.suppress(ChildProcessError):  # a submission may have had somebody else wait for its children
        while not ended and time.monotonic() < ends:
            time.sleep(_LOOK_S)
            ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if not ended or status:
        _kill_session(child)
        _unlock()


def _kill_session(session: int) -> None:
    """Kills all processes of a session. Its leader's group is not enough: ninja gives each compiler one of its own."""
    ends = time.monotonic() + _KILL_S
    while (alive := _alive(session)) and time.monotonic() < ends:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_S)


def _alive(session: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, its = path.read_text(errors="replace").rpartition(") ")[2].split()[:4]
            if int(its) == session and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def _unlock() -> None:
    """Removes torch's locks on builds that were cut short: the next build would wait for them for ever."""
    folder = os.environ.get("TORCH_EXTENSIONS_DIR")
    for lock in Path(folder).rglob("lock") if folder else ():
        with contextlib.suppress(OSError):  # a submission may have made a folder of that name
            lock.unlink()


def _quietly(function: Callable[..., Any], launches: Sequence[Sequence[Slot]], driver: Any) -> None:
    """In the process that is thrown away, whose CUDA context is its parent's and cannot be used."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    _compile_only(driver)
    for launch in launches:
        with contextlib.suppress(BaseException), _without_data():
            function(*(_tensor(slot) for slot in launch))


def _tensor(slot: Slot) -> Any:
    """One of this shape at an address that is a multiple of 16, as they all are."""
    import torch

    return torch.empty_strided(slot.shape, slot.strides, dtype=getattr(torch, slot.dtype), device="meta")


def _without_data() -> Any:
    """A mode in which what would be made on the GPU has no data either."""
    from torch.overrides import TorchFunctionMode

    class WithoutData(TorchFunctionMode):
        def __torch_function__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if kwargs.get("device") is not None:
                kwargs["device"] = "meta"
            return called(*args, **kwargs)

    return WithoutData()


def _compile_only(driver: Any) -> None:
    """From now on a launch compiles the kernel, in every configuration among which an autotuner chooses."""
    import torch
    import triton.runtime.driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    def compile_it(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        if driver.launcher is not None:  # up to 3.6 Triton compiles a C function for each that launches it
            with contextlib.suppress(Exception):
                driver.launcher(kernel.src, kernel.metadata)
        return kernel

    def compile_all(self: Any, *args: Any, grid: Any, warmup: bool = True, **kwargs: Any) -> None:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        for configuration in self.prune_configs(kwargs):
            with contextlib.suppress(Exception):  # some do not fit
                self.fn.run(*args, grid=grid, warmup=True, **kwargs, **configuration.all_kwargs())

    JITFunction.run, Autotuner.run = compile_it, compile_all
    triton.runtime.driver.set_active(driver)
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda *_, **__: driver.properties
    torch.cuda.synchronize = lambda *_, **__: None


class _Driver:
    """What Triton asks its driver for, as it was answered before the process was forked."""

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
