"""Run the blocks of a simulated Numba kernel: its threads in turn, from one barrier to the next, and by warps.

One thread of the host runs them all. A kernel that waits for others, at a barrier or in a function of warps, becomes a
generator that yields there. A call such as `cuda.syncthreads()` in line 7 becomes `(yield ("syncthreads", 7))`, and a
call of a device function that waits becomes `(yield from …)`. Python switches generators much faster than threads.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numba.cuda import types
from numba.cuda.np.numpy_support import as_dtype
from numba.cuda.simulator import kernel
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAAtomic, FakeCUDALocal, FakeCUDAModule, FakeCUDAShared

from grader.words import plural
from grader.worker.simulator.lacks import NotSimulated
from grader.worker.simulator.multiprocessors import exchanged
from grader.worker.simulator.numba_log import Launch, Who

_MOST_THREADS, _MOST_BLOCK = 1024, (1024, 1024, 64)
_MOST_GRID = ((1 << 31) - 1, 65_535, 65_535)
_SHARED_BYTES, _DYNAMIC_BYTES = 48 << 10, 227 << 10
_WARP, _EVERY_LANE = 32, 0xFFFFFFFF
_INNER = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_launch: Any = None
_making_shared = threading.Lock()  # threads of the host, if a kernel cannot be translated, make an array once as well


def install() -> None:
    """Replace the simulator's own blocks, shared arrays and atomics, and add the functions of warps."""
    kernel.FakeCUDAKernel.__call__ = _launched(kernel.FakeCUDAKernel.__call__)
    kernel.BlockManager.run = _runner(kernel.BlockManager.run)
    FakeCUDAShared.array = _shared(FakeCUDAShared.array)
    FakeCUDALocal.array = lambda self, shape, dtype, alignment=None: _unwritten(shape, dtype)
    for name, function in list(vars(FakeCUDAAtomic).items()):
        if callable(function) and not name.startswith("__"):
            setattr(FakeCUDAAtomic, name, _atomic(function))
    for name in ("threadfence", "threadfence_system"):
        setattr(FakeCUDAModule, name, _fence)
    FakeCUDAModule.activemask = _active_mask
    FakeCUDAModule.lanemask_lt = lambda self: (1 << self.laneid) - 1


def _active_mask(self: Any) -> int:
    here: Any = threading.current_thread()
    return sum(1 << lane.number % _WARP for lane in getattr(here, "warp", ()) if lane.active)


def _launched(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any) -> Any:
        global _launch
        if self._device or kernel._get_kernel_context() is not None:
            return original(self, *args)
        grid, block = kernel.normalize_kernel_dimensions(self.grid_dim, self.block_dim)
        _must_fit(grid, block, self.dynshared_size, getattr(self, "most_threads", _MOST_THREADS))
        _launch = Launch(tuple(block), math.prod(grid))
        return original(self, *args)

    return call


def _must_fit(grid: Any, block: Any, dynamic_bytes: int, bound: int) -> None:
    """Raise ValueError for a launch that a GPU refuses. `bound`: the kernel's own limit of threads per block."""
    threads = int(np.prod(block))
    if said := exchanged(grid, block):
        raise ValueError(said)
    if threads > _MOST_THREADS:
        said = f"A block of this launch has {plural(threads, 'thread')}"
        raise ValueError(f"{said}, and a GPU allows at most {_MOST_THREADS:,}")
    if threads > bound:
        said = f"A block of this launch has {plural(threads, 'thread')}"
        raise ValueError(f"{said}, and the kernel's `launch_bounds` allow at most {bound:,}")
    for what, lengths, limits in (("block", block, _MOST_BLOCK), ("grid", grid, _MOST_GRID)):
        for axis, length, most in zip("xyz", lengths, limits, strict=True):
            if not 1 <= length <= most:
                raise ValueError(
                    f"The {what} of this launch has length {length:,} along {axis}, and a GPU allows 1 to {most:,}"
                )
    if dynamic_bytes > _DYNAMIC_BYTES:
        raise ValueError(
            f"A block has {dynamic_bytes:,} B of shared memory, and a GPU allows at most {_DYNAMIC_BYTES:,} B"
        )


def _runner(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(manager: Any, block: tuple[int, ...], *args: Any) -> None:
        function = manager._f
        _launch.begin_block()
        try:
            waits = waiting(function, {*BARRIERS, *LANES})
        except Untranslatable:
            original(manager, block, *args)  # with a thread of the host for each, which cannot be logged
            return
        names = function.__code__.co_varnames
        logged = [_launch.logged(each, name) for each, name in zip(args, names, strict=False)]
        if waits is None:
            _run_in_one_thread(manager, block, *logged)
        else:
            _Block(manager, block, lambda: waits(*logged)).run()
        _launch.end_block()

    return run


@functools.cache
def _points(block_dim: tuple[int, ...]) -> list[Dim3]:
    """Return the threads of a block in the order of their numbers."""
    x, y, z = block_dim
    return [Dim3(i, j, k) for k in range(z) for j in range(y) for i in range(x)]


def _run_in_one_thread(manager: Any, block: tuple[int, ...], *args: Any) -> None:
    """Run the threads of a block one after another, in this thread."""
    here: Any = threading.current_thread()
    here.blockIdx = Dim3(*block)
    for number, point in enumerate(_points(tuple(manager._block_dim))):
        here.threadIdx, here.thread_id = point, number
        _launch.who = Who(block, number)
        manager._f(*args)


class _Lane:
    """A thread of a block. `running` yields each request to wait, and gets the answer."""

    __slots__ = ("active", "answer", "done", "number", "point", "request", "running", "warp", "warp_barriers")

    def __init__(self, number: int, point: Dim3, running: Any) -> None:
        self.number, self.point = number, point
        self.running = running
        self.request: tuple[Any, ...] | None = None  # the function in which it waits, its line, its arguments
        self.answer: Any = None
        self.done = False
        self.active = True  # until all others have come as far
        self.warp_barriers = 0
        self.warp: list[_Lane] = []


class _Block:
    """A block whose threads wait for each other."""

    def __init__(self, manager: Any, index: tuple[int, ...], started: Callable[[], Any]) -> None:
        self.index = index
        self.barriers = 0
        points = _points(tuple(manager._block_dim))
        self.lanes = [_Lane(number, point, started()) for number, point in enumerate(points)]
        self.warps = [self.lanes[first : first + _WARP] for first in range(0, len(self.lanes), _WARP)]
        for warp in self.warps:
            for lane in warp:
                lane.warp = warp

    def run(self) -> None:
        here: Any = threading.current_thread()
        here.blockIdx = Dim3(*self.index)
        launch, index, alive = _launch, self.index, self.lanes
        while alive:
            ended = False
            for lane in alive:
                if lane.request is None:
                    here.threadIdx, here.thread_id, here.warp = lane.point, lane.number, lane.warp
                    launch.who = Who(index, lane.number, self.barriers, lane.warp_barriers)
                    try:
                        lane.request = lane.running.send(lane.answer)
                    except StopIteration:
                        lane.done = ended = True
            if ended:
                for lane in alive:
                    lane.active = not lane.done
                alive = [lane for lane in alive if lane.active]
            self._release(alive)

    def _release(self, alive: list[_Lane]) -> None:
        """Let the lanes go on whose warp or block has arrived. RuntimeError: they wait for others that never arrive."""
        first = alive[0].request if len(alive) == len(self.lanes) else None
        if first and first[0] == "syncthreads" and all(lane.request == first for lane in alive):
            self.barriers += 1
            for lane in alive:
                lane.answer = lane.request = None
            return
        for warp in self.warps:
            _meet(warp)
        if alive and all(lane.request and lane.request[0] in BARRIERS for lane in alive):
            self._pass([lane.request for lane in alive if lane.request], alive)
        if alive and all(lane.request for lane in alive):
            name = next(lane.request[0] for lane in alive if lane.request and lane.request[0] not in BARRIERS)
            raise RuntimeError(f"`{name}` waits for lanes of its mask that never reach it")

    def _pass(self, requests: list[tuple[Any, ...]], alive: list[_Lane]) -> None:
        """Let the lanes go on from their barrier, which every thread of the block must have reached."""
        places = list(dict.fromkeys(f"cuda.{request[0]}() on line {request[1]}" for request in requests))
        if requests[0][0] == "sync" and _launch.blocks > 1:
            raise NotSimulated(f"`cuda.cg.this_grid().sync()` for more than one block (line {requests[0][1]})")
        ended = len(self.lanes) - len(alive)
        said = f"{len(alive)} of {plural(len(self.lanes), 'thread')} of a block wait at {places[0]}"
        if len(places) > 1:
            raise RuntimeError(f"{said}, and others wait at {places[1]}: all of them must reach the same one")
        if ended:
            raise RuntimeError(f"{said}, and the other {ended:,} ended without reaching it")
        self.barriers += 1
        votes = [bool(request[2]) for request in requests if len(request) > 2]
        for lane, request in zip(alive, requests, strict=True):
            lane.answer, lane.request = BARRIERS[request[0]](votes), None


BARRIERS: dict[str, Callable[[list[bool]], Any]] = {
    "syncthreads": lambda votes: None,
    "syncthreads_count": sum,
    "syncthreads_and": lambda votes: int(all(votes)),
    "syncthreads_or": lambda votes: int(any(votes)),
    "sync": lambda votes: None,  # of a cooperative grid, which has one block here
}


def _meet(warp: list[_Lane]) -> None:
    """Answer the lanes of a warp that wait for each other in the same function, if all of their mask are there."""
    for name, mask in {_key(lane) for lane in warp if lane.request and lane.request[0] not in BARRIERS}:
        named = {lane.number % _WARP: lane for lane in warp if mask >> lane.number % _WARP & 1 and not lane.done}
        if any(_key(lane) != (name, mask) for lane in named.values()):
            continue
        values = {index: lane.request[3:] for index, lane in named.items() if lane.request}
        for index, lane in named.items():
            lane.answer = LANES[name](index, values)
            lane.warp_barriers += 1
        for lane in named.values():
            lane.request = None


def _key(lane: _Lane) -> tuple[str, int]:
    """Return the function of a warp in which a lane waits, and its mask."""
    if not lane.request or lane.request[0] in BARRIERS:
        return "", 0
    mask = lane.request[2] if len(lane.request) > 2 else _EVERY_LANE
    return lane.request[0], int(mask) & _EVERY_LANE


def _shuffled(source: Callable[[int, int], int]) -> Callable[..., Any]:
    """Return a shuffle: a lane gets the value of another one, or its own if that one is missing."""

    def answer(index: int, values: Any) -> Any:
        other = source(index, int(values[index][1]))
        return values[other if other in values else index][0]

    return answer


def _same(index: int, values: Any) -> int:
    return sum(1 << other for other, (value,) in values.items() if value == values[index][0])


def _votes(values: Any) -> Iterator[bool]:
    return (bool(value) for (value,) in values.values())


LANES: dict[str, Callable[[int, Any], Any]] = {
    "syncwarp": lambda index, values: None,
    "shfl_sync": _shuffled(lambda index, given: given % _WARP),
    "shfl_up_sync": _shuffled(lambda index, given: index - given),
    "shfl_down_sync": _shuffled(lambda index, given: index + given),
    "shfl_xor_sync": _shuffled(lambda index, given: index ^ given),
    "ballot_sync": lambda index, values: sum(1 << lane for lane, (value,) in values.items() if value),
    "any_sync": lambda index, values: any(_votes(values)),
    "all_sync": lambda index, values: all(_votes(values)),
    "eq_sync": lambda index, values: len(set(_votes(values))) == 1,
    "match_any_sync": _same,
    "match_all_sync": lambda index, values: (
        (sum(1 << lane for lane in values), True) if len(set(values.values())) == 1 else (0, False)
    ),
}


def counts() -> dict[str, int]:
    """Return the atomics of the last launch, and the accesses of its busiest threads."""
    return {} if _launch is None else {"atomics": _launch.atomics, **_launch.counts}


def _fence(self: Any) -> None:
    if _launch is not None:
        _launch.fences = True


def _atomic(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any) -> Any:
        if _launch is None:
            return original(self, *args)
        _launch.atomics += 1
        _launch.atomic_line = sys._getframe(1).f_lineno
        try:
            return original(self, *args)
        finally:
            _launch.atomic_line = 0

    return call


def _unwritten(shape: Any, dtype: Any) -> Any:
    made = np.empty(shape, as_dtype(dtype) if isinstance(dtype, types.Type) else dtype)
    if np.issubdtype(made.dtype, np.floating):
        made[...] = np.nan
    return made.view(np.recarray) if made.dtype.names else made


def _shared(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make one array per block for each call in the source, with NaN in it. A ValueError says that it is too large."""

    def array(self: Any, shape: Any, dtype: Any, alignment: Any = None) -> Any:
        frame = sys._getframe(1)
        place = (frame.f_code, frame.f_lasti)
        with _making_shared:
            if place not in _launch.shared_arrays:
                made = original(self, shape, dtype) if shape == 0 else _unwritten(shape, dtype)
                _launch.block_bytes += made.nbytes if shape != 0 else 0
                if _launch.block_bytes > _SHARED_BYTES:
                    what = f"A block has {_launch.block_bytes:,} B of shared memory in `cuda.shared.array`"
                    raise ValueError(f"{what}, and a GPU allows at most {_SHARED_BYTES:,} B")
                _launch.shared_arrays[place] = _launch.shared(made, frame.f_lineno, frame.f_code.co_filename)
            return _launch.shared_arrays[place]

    return array


class Untranslatable(Exception):
    """The function waits in a place where it cannot yield, or its source is not known."""


def waiting(function: Any, names: set[str]) -> Callable[..., Any] | None:
    """Return the function as a generator that yields `(name, line, *arguments)`; None if it calls none of the `names`.

    Raises Untranslatable.
    """
    return _waiting(function, frozenset(names))


@functools.cache
def _waiting(function: Any, names: frozenset[str]) -> Callable[..., Any] | None:
    try:
        lines, first = inspect.getsourcelines(function)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, ValueError, SyntaxError) as error:
        raise Untranslatable from error
    if not isinstance(definition, ast.FunctionDef):
        raise Untranslatable
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    change = _Yielding(function, names, first)
    definition.body = [change.visit(statement) for statement in definition.body]
    if not change.waits:
        return None
    if change.inside:
        raise Untranslatable
    definition.decorator_list = []
    outer = ast.parse(f"def outer({', '.join(cells)}): return {definition.name}").body[0]
    outer.body.insert(0, definition)  # type: ignore[attr-defined]
    module = ast.increment_lineno(ast.fix_missing_locations(ast.Module([outer], [])), first - 1)
    space: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec"), function.__globals__, space)
    code = space["outer"](*cells).__code__
    closure = tuple(cells[name] for name in code.co_freevars)
    return FunctionType(code, function.__globals__, definition.name, function.__defaults__, closure)


def _variable(function: Any, name: str) -> Any:
    """Return the value of a variable outside of the function, or None."""
    if name not in function.__code__.co_freevars:
        return function.__globals__.get(name)
    cell = function.__closure__[function.__code__.co_freevars.index(name)]
    return cell.cell_contents if cell != CellType() else None


class _Yielding(ast.NodeTransformer):
    """Replace calls that wait. `inside` says whether one is in a function or comprehension within the function."""

    def __init__(self, function: Any, names: frozenset[str], first: int) -> None:
        self.function, self.names, self.first = function, names, first
        self.waits = self.inside = False
        self._depth = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        inner = isinstance(node, _INNER)
        self._depth += inner
        super().generic_visit(node)
        self._depth -= inner
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in self.names:
            self._wait()
            what = [ast.Constant(called.attr), ast.Constant(self.first + node.lineno - 1), *given]
            return ast.copy_location(ast.Yield(ast.Tuple(what, ast.Load())), node)
        device = _variable(self.function, called.id) if isinstance(called, ast.Name) else None
        if getattr(device, "_device", False) and (made := _waiting(device.fn, self.names)) is not None:  # type: ignore[union-attr]
            self._wait()
            name = f"_waiting_{called.id}_{id(made)}"  # type: ignore[attr-defined]
            self.function.__globals__[name] = made
            node.func = ast.copy_location(ast.Name(name, ast.Load()), called)
            return ast.copy_location(ast.YieldFrom(node), node)
        return node

    def _wait(self) -> None:
        self.waits = True
        self.inside |= self._depth > 0
