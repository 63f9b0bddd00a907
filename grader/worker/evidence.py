"""Gather evidence about one call of a submission: launches, operations of torch, and what the host does or waits for.

A submission shares this process, so it can falsify the evidence, which is for advice only.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any

__all__ = ["gather", "needs_a_value"]

_MOST_OPERATIONS = 64
_ROUNDS, _CALLS, _AHEAD_CYCLES = 3, 4, 1_000_000
_LONG_S = 0.1  # after a call that takes longer, this one has to do
_WORDS = {"access": 8, "launch": 11, "partly": 4, "total": 2, "wait": 3}  # of a line of `cuda_on_cpu_counted`
_NO_WORK = {  # operations that only make a view or ask for memory
    "empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "set_", "view", "_unsafe_view", "t",
    "detach", "alias", "as_strided", "transpose", "permute", "expand", "unsqueeze", "squeeze", "slice", "select",
    "reshape", "unbind", "split", "chunk", "lift_fresh", "_local_scalar_dense", "resize_", "unfold", "numpy_T",
    "view_as_real", "record_stream", "is_pinned", "_pin_memory",
}  # fmt: skip
_ONLY_WRITES = {"copy_", "fill_", "zero_"}  # in place
_WAITS = frozenset({"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "unique_dim"})


def gather(
    call: Callable[[Callable[..., Any]], None], entry: Callable[..., Any], timed: bool = False
) -> dict[str, Any]:
    """Call `call(entry)`, and return `{"launches": […], "operations": […], "host": […], "waits": […]}`.

    A mode of torch watches the operations. If the call fails, perhaps because a harness refuses a mode that is on, it
    is repeated with the mode within `entry` only.

    A launch has a kernel's name or "", its line, grid, threads per block, count and, in the simulator, accesses by line
    and atomics. On a GPU only Triton's launches are seen here, with facts about their compiled kernels. An operation of
    torch has its name, line, count, the bytes that it reads and writes, and how many of these are float64 results. The
    host's work is as `tally.host` notes it. If it is `timed`, there is also "us": the GPU's microseconds for a call.
    Exceptions of the second call are passed on.
    """
    try:
        found = _watched(call, entry, around=True)
    except Exception:
        found = _watched(call, entry, around=False)
    return found | ({"us": _microseconds(lambda: call(entry))} if timed and not _is_simulated() else {})


def _is_simulated() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


def _watched(call: Callable[[Callable[..., Any]], None], entry: Callable[..., Any], around: bool) -> dict[str, Any]:
    from grader.worker.simulator import tally

    operations: list[dict[str, Any]] = []
    outer = _operations(operations) if around else contextlib.nullcontext()
    within = entry if around else _operations(operations)(entry)
    if _is_simulated():
        from grader.worker.simulator import cuda_library

        cuda_library.counted(on=1)
        with tally.counting() as launches, tally.host_work() as host, _kernels_made(), outer:
            call(within)
        of_cuda, waits = of_cuda_library(cuda_library.counted(on=0))
        launches = [*launches, *of_cuda]
    else:
        waits = []
        with _triton_launches() as launches, tally.host_work() as host, _kernels_made(), outer:
            call(within)
    return {"launches": launches, "operations": operations, "host": host, "waits": waits}


def needs_a_value(function: Any, args: Sequence[Any]) -> bool:
    """Whether the host waits for this operation of torch: it needs a value, or a shape that depends on one."""
    import torch

    name = function.overloadpacket.__name__
    masked = name == "index" and any(each is not None and each.dtype is torch.bool for each in args[1])
    return masked or name in _WAITS


@contextlib.contextmanager
def _kernels_made() -> Iterator[None]:
    """Note each kernel of Triton that the submission makes meanwhile."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    from grader.worker.simulator import tally

    def noting(before: Any) -> Any:
        @functools.wraps(before)
        def make(self: Any, fn: Any, *args: Any, **named: Any) -> None:
            before(self, fn, *args, **named)
            if getattr(getattr(fn, "__code__", None), "co_filename", "").endswith(tally.FILE):
                tally.host("builds", fn.__name__)

        return make

    kinds: tuple[Any, ...] = (InterpretedFunction, JITFunction)
    first = [kind.__init__ for kind in kinds]
    try:
        for kind, before in zip(kinds, first, strict=True):
            kind.__init__ = noting(before)
        yield
    finally:
        for kind, before in zip(kinds, first, strict=True):
            kind.__init__ = before


def _microseconds(call: Callable[[], None]) -> float:
    """Return the GPU's time for a call. The host is ahead of the GPU, unless its own work takes longer."""
    import torch

    cuda: Any = torch.cuda

    def mean(calls: int) -> float:
        cuda.synchronize()
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        cuda._sleep(_AHEAD_CYCLES)
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return 1e3 * float(start.elapsed_time(end)) / calls

    once = mean(1)
    return once if once > 1e6 * _LONG_S else sorted(mean(_CALLS) for _ in range(_ROUNDS))[_ROUNDS // 2]


def of_cuda_library(lines: list[list[str]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the launches of CUDA C++ in the simulator, and the calls for which the host waits."""
    from grader.worker.simulator.cuda_library import instance

    found: list[dict[str, Any]] = []
    accesses: list[dict[str, Any]] = []
    partly: list[dict[str, Any]] = []
    waits: list[dict[str, Any]] = []
    kernel = ""
    for kind, *words in lines:
        if kind == "kernel":
            kernel = instance(" ".join(words)).partition("<")[0].rpartition("::")[2]
        if len(words) + 1 != _WORDS.get(kind):
            continue
        if kind == "access":
            units, turns, size, of_all = map(int, words[3:])
            warp = {"kind": words[1], "name": words[2], "line": int(words[0]), "units": units / max(1, turns)}
            accesses.append(warp | {"size": size, "count": of_all})
        elif kind == "launch":
            line, x, y, z, threads, shared, atomics, most, total, alone = map(int, words)
            known = {
                "kernel": kernel,
                "line": line,
                "grid": [x, y, z],
                "threads": threads,
                "count": 1,
                "shared": shared,
            }
            busiest = {"most": most, "total": total, "alone": alone}
            found.append(known | busiest | {"atomics": atomics, "warps": accesses, "partly": partly})
            accesses, partly = [], []
        elif kind == "partly":
            partly.append(dict(zip(("line", "lanes", "turns"), map(int, words), strict=True)))
        elif kind == "wait":
            waits.append({"line": int(words[0]), "name": words[1]})
        elif found:
            found[-1]["count"] += max(0, int(words[0]) - len(found))
    return found, waits


@contextlib.contextmanager
def _triton_launches() -> Iterator[list[dict[str, Any]]]:
    """Collect the launches of Triton's kernels on a GPU, and what was compiled for them."""
    from triton.runtime.jit import JITFunction

    from grader.worker.simulator.tally import line_of_submission
    from grader.worker.toolchain.machine_facts import kernel_facts

    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    before = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = before(self, *args, grid=grid, warmup=warmup, **kwargs)
        if kernel is None or warmup:
            return kernel
        line = line_of_submission()
        sizes = grid(dict(zip(self.arg_names, args, strict=False)) | kwargs) if callable(grid) else grid
        known = found.setdefault((self.__name__, line, kernel.hash), {"count": 0})
        known["count"] += 1
        if known["count"] == 1:
            facts = kernel_facts(kernel.asm["ptx"], log="")
            used = {"registers": kernel.n_regs, "spilled": kernel.n_spills, "shared": kernel.metadata.shared}
            launch = {"kernel": self.__name__, "line": line, "grid": [int(n) for n in sizes]}
            shape = {"threads": 32 * kernel.metadata.num_warps, "stages": kernel.metadata.num_stages}
            code = (facts[0] if facts else {}) | used | shape
            known |= {**launch, "threads": shape["threads"], "code": code}
        return kernel

    JITFunction.run = run
    collected: list[dict[str, Any]] = []
    try:
        yield collected
    finally:
        JITFunction.run = before
        collected += found.values()


@contextlib.contextmanager
def _operations(found: list[dict[str, Any]]) -> Iterator[None]:
    """Collect the operations of torch that move data, in lines of the submission, and note waits for the GPU."""
    from torch import Tensor, float64
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    from grader.worker.simulator import tally

    def on_gpu(tensor: Any) -> bool:
        if not _is_simulated():
            return bool(tensor.is_cuda)
        from grader.worker.simulator import devices

        return devices.device_of(tensor) != devices.CPU

    by_place: dict[tuple[Any, ...], dict[str, Any]] = {}

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Otherwise torch.compile refuses to run, and from then on skips the function that it was given."""
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if needs_a_value(func, args) and on_gpu(args[0]):
                tally.host("waits", "")
            name = func.name().removeprefix("aten::").partition(".")[0]
            place = (name, tally.line_of_submission())
            known = place in by_place or len(by_place) < _MOST_OPERATIONS
            if place[1] and name not in _NO_WORK and known and not tally.interpreting:
                tensors = [each for each in tree_leaves((args, kwargs, result)) if isinstance(each, Tensor)]
                once = {(each.data_ptr(), tuple(each.shape)): each for each in tensors}
                made = [each for each in tree_leaves(result) if isinstance(each, Tensor)]
                moved = _bytes(once.values())
                if name.endswith("_") and name not in _ONLY_WRITES:  # in place: what is read is written as well
                    moved += _bytes(made)
                empty = {"name": name, "line": place[1], "count": 0, "bytes": 0, "double": 0}
                into = by_place.setdefault(place, empty)
                into["count"] += 1
                into["bytes"] += moved
                into["double"] += _bytes(each for each in made if each.dtype is float64)
            return result

    try:
        with Watch():  # type: ignore[no-untyped-call]
            yield
    finally:
        found += by_place.values()


def _bytes(tensors: Iterable[Any]) -> int:
    return sum(prod(each.shape) * each.element_size() for each in tensors)
