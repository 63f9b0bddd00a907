"""Log what interpreted Triton kernels do to memory, and observe races, stray accesses and repeated tuning.

All loads and stores of the interpreter, those of block pointers and tensor descriptors included, end in
`create_masked_load` and `create_masked_store` of its builder, and atomics in `create_atomic_rmw` and
`create_atomic_cas`.
"""

from __future__ import annotations

import functools
import gc
import inspect
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from grader.worker.simulator import tally
from grader.worker.simulator.accesses import RACE, Launch, Region, StrayAccess, observe, region_of, rights_of

_POINTER = re.compile(r"(?<=\w)_(?:ptr|pointer)$")
_running = 0  # launches, at most one
_launch: Launch | None = None  # the one that runs now
_kernel_file = ""
_gets_addresses = False  # in a tensor of integers, or as an integer
_one_at_a_time = threading.RLock()  # the interpreter keeps a launch's state in global variables
_tuner: Any = None  # the autotuner whose next launch a GPU would have repeated


def watch() -> None:
    """Log the accesses of every launch from now on. A second call does nothing."""
    from triton.runtime import interpreter

    executor: Any = interpreter.GridExecutor
    if hasattr(executor.__call__, "__wrapped__"):
        return
    executor.__call__ = _logged(_counted(executor.__call__))
    interpreter.InterpretedFunction.__call__ = _in_a_launch(interpreter.InterpretedFunction.__call__)
    builder: Any = interpreter.InterpreterBuilder
    builder.set_grid_idx = _begun(builder.set_grid_idx)
    builder.create_masked_load = _loaded(builder.create_masked_load)
    builder.create_masked_store = _stored(builder.create_masked_store)
    builder.create_atomic_rmw = _updated(builder.create_atomic_rmw)
    builder.create_atomic_cas = _compared(builder.create_atomic_cas)


def will_tune(tuner: Any) -> None:
    """Say that a GPU would repeat the next launch of this autotuner, to time its configurations."""
    global _tuner
    resets = tuner.reset_to_zero or tuner.restore_value or tuner.user_defined_pre_hook
    if not resets and not any(config.pre_hook for config in tuner.configs):
        _tuner = tuner


def _counted(original: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        global _running
        _running += 1
        try:
            return original(*args, **kwargs)
        finally:
            _running -= 1

    return run


def _in_a_launch(original: Any) -> Any:
    """Refuse the call of a kernel or a function of Triton by the host, as on a GPU."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _running:
            raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")  # Triton's own words
        return original(*args, **kwargs)

    return call


def _logged(original: Any) -> Any:
    from grader.worker.simulator.devices import CPU, device_of

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _one_at_a_time:
            return launched(self, *args, **kwargs)

    def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _launch, _kernel_file, _gets_addresses, _tuner
        names = inspect.signature(self.fn).parameters
        named = dict(zip(names, args, strict=False)) | {key: value for key, value in kwargs.items() if key in names}
        for number, value in enumerate(named.values()):
            if device_of(value) == CPU:
                raise ValueError(f"Pointer argument (at {number}) cannot be accessed from Triton (cpu tensor?)")
        regions = list(_regions(named))
        tuner, _tuner = _tuner, None
        _launch, _kernel_file = Launch(self.fn.__name__, (), regions), self.fn.__code__.co_filename
        _gets_addresses = any(map(_may_be_address, named.values()))
        tally.interpreting = True
        try:
            result = original(self, *args, **kwargs)
        finally:
            launch, _launch = _launch, None
            tally.interpreting = False
        tally.launched(launch.kernel, launch.grid, 32 * int(kwargs.get("num_warps") or 4), tally.line_of_submission())
        if tuner is not None and tuner.base_fn.__name__ == launch.kernel:
            for each in regions:
                if each.was_read and each.was_written:
                    _repeat(each, lambda: original(self, *args, **kwargs), launch.kernel)
        return result

    return call


def _regions(named: dict[str, Any]) -> Iterator[Region]:
    """Yield the region of each tensor that a kernel gets, by itself, in a tuple or in a descriptor."""
    for name, value in named.items():
        for each in value if isinstance(value, tuple) else (value,):
            tensor = getattr(each, "base", each)
            if hasattr(tensor, "untyped_storage"):
                region = region_of(_POINTER.sub("", name), tensor)
                if region is not None:
                    region.parameter = name
                    yield region


def _may_be_address(value: Any) -> bool:
    if isinstance(value, int):
        return value >= 1 << 32
    return str(getattr(value, "dtype", "")) in ("torch.int64", "torch.uint64")


def _is_in_a_tensor(low: int, high: int) -> bool:
    """Return whether the bytes belong to any tensor of the process. This takes some 20 ms."""
    import torch

    storages = [each.untyped_storage() for each in gc.get_objects() if type(each) is torch.Tensor]
    return any(each.data_ptr() <= low and high <= each.data_ptr() + each.nbytes() for each in storages)


def _repeat(region: Region, run: Any, kernel: str) -> None:
    """Run a tuned launch once more, as a GPU does, and observe whether that changes a tensor. Undo the change."""
    import torch

    raw = torch.empty(0, dtype=torch.uint8).set_(region.keeps.untyped_storage())
    once = raw.clone()
    run()
    if not torch.equal(raw, once):
        raw.copy_(once)
        said = f"`triton.autotune` runs `{kernel}` many times to time it, and each run changes what the last one left"
        advice = f'Pass `reset_to_zero=["{region.parameter}"]` to `triton.autotune` if it must begin with 0, or '
        advice += f'`restore_value=["{region.parameter}"]` if it must keep its value.'
        observe(RACE, f"{said} in `{region.name}`: on a GPU the first result is wrong.", None, advice)


def _begun(original: Any) -> Any:
    @functools.wraps(original)
    def set_grid_idx(self: Any, *point: int) -> None:
        original(self, *point)
        if _launch is not None:
            _launch.grid = self.grid_dim
            _launch.begin(point)

    return set_grid_idx


def _line() -> int | None:
    """Return the line of the submission that runs now."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != _kernel_file:
        frame = frame.f_back
    return None if frame is None else int(frame.f_lineno)


def _where(ptrs: Any, mask: Any, stores: bool, line: int | None, atomic: bool = False) -> tuple[Region | None, Any]:
    """Return the region of a block of pointers and the numbers of its elements that are not masked out.

    The region is None if all are masked out, or if some are outside of every tensor. The numbers are None if a store to
    these would change memory of this process, which the judge's buffers are not. StrayAccess: they cannot be used.
    """
    assert _launch is not None
    active = ptrs.data.ravel() if mask is None or mask.all() else ptrs.data[mask]
    if not active.size:
        return None, active
    low, high = int(active.min()), int(active.max())
    width = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
    region = _launch.region(low, high + width)
    if region is None:
        if _gets_addresses and all(_is_in_a_tensor(address, address + width) for address in (low, high)):
            return None, active
        sentence = _launch.say_stray(low, high, stores, line)
        rights = [rights_of(address) for address in (low, high)]
        if any(("w" if stores else "r") not in each for each in rights):
            raise StrayAccess(f"{sentence} Pass a mask that is false there.")
        if stores and any(each.endswith("p") for each in rights):
            return None, None
        return None, active
    if not atomic:
        _launch.look_at_sectors(region, active, width, stores, line)
    kind = "atomic" if atomic else "store" if stores else "load"
    tally.access(kind, region.name, line, active, width, ptrs.data.size - active.size, region.origin)
    units = ((active - np.uint64(region.start)) // np.uint64(region.item)).astype(np.intp)
    if width > region.item:
        units = (units[:, None] + np.arange(width // region.item)).ravel()
    return region, units


def _loaded(original: Any) -> Any:
    @functools.wraps(original)
    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *how: Any, **named: Any) -> Any:
        if _launch is not None:
            line = _line()
            region, units = _where(ptrs, _array(mask), False, line)
            is_volatile = named.get("is_volatile", how[-1] if how else False)
            if region is not None and region.writable and not is_volatile:
                _launch.load(region, units, line)
                return _looked_at(original(self, ptrs, mask, other, *how, **named), region, line)
        return original(self, ptrs, mask, other, *how, **named)

    return create_masked_load


def _looked_at(handle: Any, region: Region, line: int | None) -> Any:
    """Return what was loaded, after a look whether it is what `torch.empty` left there."""
    from grader.worker.simulator.devices import UNWRITTEN

    data = handle.data
    bits = UNWRITTEN.get(data.itemsize) if region.item == data.itemsize else None
    if _launch is not None and bits is not None and (_bits(np.ascontiguousarray(data)) == bits).any():
        _launch.say_unwritten(region, line)
    return handle


def _stored(original: Any) -> Any:
    from triton.runtime.interpreter import _interpreter

    def held(ptrs: Any, mask: Any, like: Any) -> Any:
        return _bits(_interpreter.load(ptrs.data, mask, np.zeros_like(like), like.dtype))

    @functools.wraps(original)
    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *how: Any) -> Any:
        if _launch is None:
            return original(self, ptrs, value, mask, *how)
        line, chosen = _line(), _array(mask)
        region, units = _where(ptrs, chosen, True, line)
        if region is None:
            return original(self, ptrs, value, mask if units is not None else _inside(ptrs, mask), *how)
        new = np.ascontiguousarray(np.broadcast_to(value.data, ptrs.data.shape))
        active = chosen.ravel()
        changes = (held(ptrs, chosen, new) != _bits(new)).ravel()[active]
        _launch.store(region, units, np.repeat(changes, units.size // changes.size), line)
        result = original(self, ptrs, value, mask, *how)
        lost = (held(ptrs, chosen, new) != _bits(new)).ravel() & active
        if lost.any():
            _launch.say_overlap(region, int(ptrs.data.ravel()[np.flatnonzero(lost)[0]]), line)
        return result

    return create_masked_store


def _inside(ptrs: Any, mask: Any) -> Any:
    """Return the mask without elements that are outside of every tensor."""
    assert _launch is not None
    width = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
    inside = np.zeros(ptrs.data.shape, bool)
    for each in _launch.regions:
        inside |= (ptrs.data >= each.start) & (ptrs.data + np.uint64(width) <= each.end)
    inside &= _array(mask)
    return inside if isinstance(mask, np.ndarray) else type(mask)(inside, mask.dtype)


def _array(mask: Any) -> Any:
    """Return a mask as an array. Block pointers and descriptors pass arrays, other blocks handles."""
    return mask if isinstance(mask, np.ndarray) else mask.data


def _bits(values: Any) -> Any:
    return values.view(f"u{values.itemsize}")


def _updated(original: Any) -> Any:
    from triton._C.libtriton import ir

    adds = (ir.ATOMIC_OP.ADD, ir.ATOMIC_OP.FADD, ir.ATOMIC_OP.XOR)

    @functools.wraps(original)
    def create_atomic_rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        clock, region, line = _atomic(ptr, mask, sem, operation in adds)
        result = original(self, operation, ptr, val, mask, sem, scope)
        if region is not None and operation in adds:
            _looked_at(result, region, line)
        return _ordered(result, clock)

    return create_atomic_rmw


def _compared(original: Any) -> Any:
    @functools.wraps(original)
    def create_atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        clock, _, _ = _atomic(ptr, None, sem, False)
        return _ordered(original(self, ptr, cmp, val, sem, scope), clock)

    return create_atomic_cas


def _atomic(ptr: Any, mask: Any, sem: Any, adds: bool) -> tuple[Any, Region | None, int | None]:
    """Log an atomic. Return the clock at its address, which its result lets the program know, its region and its line.

    There may be no clock and no region: None.
    """
    if _launch is None:
        return None, None, None
    line = _line()
    region, units = _where(ptr, None if mask is None else _array(mask), True, line, atomic=True)
    if region is None:
        return None, None, line
    _launch.atomic(region, units, line, adds)
    if ptr.data.size > 1 or sem.name == "RELAXED":
        return None, region, line
    address = int(ptr.data.ravel()[0])
    clock = _launch.clock(address) if sem.name != "RELEASE" else None
    if sem.name != "ACQUIRE":
        _launch.release(address)
    return clock, region, line


def _ordered(handle: Any, clock: Any) -> Any:
    """Return the result of an atomic so that using it acquires the clock.

    An atomic whose result is not used orders nothing: the program goes on in any case.
    """
    if clock is None:
        return handle
    used = _handle_type()(handle.data, handle.dtype)
    used.launch, used.clock = _launch, clock
    return used


@functools.cache
def _handle_type() -> Any:
    from triton.runtime.interpreter import TensorHandle

    class Used(TensorHandle):  # type: ignore[misc]
        """A handle that acquires a clock when its data is read."""

        launch: Any = None
        clock: Any = None

        @property
        def data(self) -> Any:
            if self.launch is not None:
                self.launch.acquire(self.clock)
                self.launch = None
            return self._data

        @data.setter
        def data(self, value: Any) -> None:
            self._data = value

    return Used
