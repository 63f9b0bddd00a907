"""Arenas: memory that the judge owns and a worker maps, on the host or on a GPU, with one slot per tensor.

Between tensors are guard bytes, and every offset is a multiple of 512. On the host an arena is a `memfd`; the input
arena is sealed, so only the judge's mapping is writable. On a GPU it is CUDA virtual memory with file-descriptor
handles: legacy CUDA IPC fails across user ids and in a sandbox. A worker maps inputs read-only, so a kernel that writes
to one fails with an illegal access. If a GPU's memory cannot be shared, each process has its own, and a `memfd`
carries the bytes.
"""

from __future__ import annotations

import mmap
import os
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any

from grader.protocol.flag import seal, sealed_memory

POISON_BYTE = 0xFF  # in and around outputs: NaN in every floating-point type, but not one that arithmetic produces
INPUT_GUARD = 0x7FF0  # 16-bit words around inputs: a different NaN, so that a copy of it is recognised
GUARD_BYTES = 128 << 10  # wider than the course's widest masked block, 32,768 float32
ITEM_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1}
_ALIGN = 512


@dataclass(frozen=True)
class Slot:
    """A tensor in an arena: `offset` in bytes, `strides` in elements."""

    arena: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def span(self) -> int:
        """Number of elements from the first to the last, gaps included."""
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))

    @property
    def bytes(self) -> int:
        return self.span * ITEM_BYTES[self.dtype]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Slot:
        return cls(data["arena"], data["offset"], tuple(data["shape"]), tuple(data["strides"]), data["dtype"])


def place(
    arena: str, start: int, shape: Sequence[int], dtype: str, row_padding: int, transposed: bool = False
) -> tuple[Slot, int]:
    """A row-major slot that follows a guard at `start`, and the offset after the slot's own guard.

    With `transposed` it is a view of a row-major tensor with reversed axes.
    """
    if transposed:
        slot, end = place(arena, start, shape[::-1], dtype, row_padding)
        return replace(slot, shape=slot.shape[::-1], strides=slot.strides[::-1]), end
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
        if axis == len(shape) - 2:
            strides[axis] += row_padding
    slot = Slot(arena, _up(start + GUARD_BYTES), tuple(shape), tuple(strides), dtype)
    return slot, _up(slot.offset + slot.bytes + GUARD_BYTES)


def _up(value: int) -> int:
    return -(-value // _ALIGN) * _ALIGN


_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h


class HostArena:
    """Shared memory on the host; a worker maps its inputs `read_only`."""

    kind = "host"

    def __init__(self, fd: int, size: int, read_only: bool) -> None:
        self.fd, self.size, self.read_only = fd, size, read_only
        protection = mmap.PROT_READ if read_only else mmap.PROT_READ | mmap.PROT_WRITE
        self._map = mmap.mmap(fd, size, prot=protection)

    @classmethod
    def create(cls, size: int, sealed: bool) -> HostArena:
        """A new arena. If `sealed`, no other process can map it writable."""
        fd = sealed_memory("arena", size)
        arena = cls(fd, size, read_only=False)
        seal(fd, _SEAL_FUTURE_WRITE if sealed else 0)
        weakref.finalize(arena, os.close, fd)
        return arena

    def bytes_at(self, offset: int, count: int) -> Any:
        """A torch uint8 tensor that shares these bytes."""
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about read-only buffers
            return torch.frombuffer(self._map, dtype=torch.uint8, count=count, offset=offset)

    def clear(self) -> None:
        """Set all bytes to 0 and return their memory to the system."""
        self._map.madvise(mmap.MADV_REMOVE)


class CudaArena:
    """CUDA virtual memory on the first visible GPU, mapped into the current process."""

    kind = "cuda"

    def __init__(self, handle: Any, fd: int, size: int, read_only: bool) -> None:
        self.fd, self.size, self._handle = fd, size, handle
        self.address = _mapped(handle, size, read_only)

    @classmethod
    def create(cls, size: int, sealed: bool = False) -> CudaArena:
        """A new arena of at least `size` bytes (rounded up to the allocation granularity).

        `sealed` has no effect: any process with the handle may set access, so the judge also keeps copies.
        """
        from cuda.bindings import driver

        fd_type = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        handle, size = _allocated(size, fd_type)
        fd = int(checked(driver.cuMemExportToShareableHandle(handle, fd_type, 0)))
        return cls(handle, fd, size, read_only=False)

    @classmethod
    def open(cls, fd: int, size: int, read_only: bool) -> CudaArena:
        """Map the arena behind a descriptor from another process."""
        from cuda.bindings import driver

        fd_type = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        handle = checked(driver.cuMemImportFromShareableHandle(fd, fd_type))
        return cls(handle, fd, size, read_only)

    def bytes_at(self, offset: int, count: int) -> Any:
        """A torch uint8 tensor that shares these bytes, with its own storage."""
        return _on_gpu(self.address + offset, count)

    def clear(self) -> None:
        """Set all bytes to 0 on the current stream."""
        self.bytes_at(0, self.size).zero_()


class StagedArena:
    """Memory of this process alone, on a GPU or in a simulator on the host. A `memfd` carries its bytes to and from
    another process, which has its own copy.
    """

    kind = "staged"

    def __init__(self, carrier: HostArena, on_gpu: bool) -> None:
        self.fd, self.size, self.read_only = carrier.fd, carrier.size, carrier.read_only
        self._carrier, self._is_on_gpu = carrier, on_gpu
        self._reserve()

    def _reserve(self) -> None:
        if not self._is_on_gpu:
            self._memory = mmap.mmap(-1, self.size)
            return
        from cuda.bindings import driver

        try:
            handle, whole = _allocated(self.size, driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE)
        except RuntimeError:  # no virtual memory management: then a kernel can write to its inputs
            self.address = self._writable_at = int(checked(driver.cuMemAlloc(self.size)))
            return
        self.address = _mapped(handle, whole, self.read_only)
        self._writable_at = _mapped(handle, whole, read_only=False) if self.read_only else self.address

    def bytes_at(self, offset: int, count: int) -> Any:
        """A torch uint8 tensor that shares these bytes of this process's memory."""
        import torch

        if self._is_on_gpu:
            return _on_gpu(self.address + offset, count)
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=count, offset=offset)

    def pull(self, count: int) -> None:
        """Copy the first `count` bytes from the carrier, and wait."""
        source = self._carrier.bytes_at(0, count)
        if not self._is_on_gpu:
            self.bytes_at(0, count).copy_(source)
            return
        from cuda.bindings import driver

        checked(driver.cuMemcpyHtoD(self._writable_at, source.data_ptr(), count))

    def push(self, count: int) -> None:
        """Copy the first `count` bytes to the carrier, and wait."""
        target = self._carrier.bytes_at(0, count)
        if not self._is_on_gpu:
            target.copy_(self.bytes_at(0, count))
            return
        from cuda.bindings import driver

        checked(driver.cuMemcpyDtoH(target.data_ptr(), self.address, count))

    def clear(self) -> None:
        """Set all bytes of this process's memory and of the carrier to 0."""
        self.bytes_at(0, self.size).zero_()
        self._carrier.clear()


Arena = HostArena | CudaArena | StagedArena


def _allocated(size: int, handle_type: Any) -> tuple[Any, int]:
    """A new allocation on the first visible GPU, and its size, rounded up to the granularity."""
    from cuda.bindings import driver

    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = 0
    prop.requestedHandleTypes = handle_type
    minimum = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    unit = checked(driver.cuMemGetAllocationGranularity(prop, minimum))
    size = -(-size // unit) * unit
    return checked(driver.cuMemCreate(size, prop, 0)), size


def _mapped(handle: Any, size: int, read_only: bool) -> int:
    """The address of a new mapping of an allocation."""
    from cuda.bindings import driver

    address = int(checked(driver.cuMemAddressReserve(size, 0, 0, 0)))
    checked(driver.cuMemMap(address, size, 0, handle, 0))
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = 0
    flags = driver.CUmemAccess_flags
    access.flags = flags.CU_MEM_ACCESS_FLAGS_PROT_READ if read_only else flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    checked(driver.cuMemSetAccess(address, size, [access], 1))
    return address


def _on_gpu(address: int, count: int) -> Any:
    import torch

    interface = {"shape": (count,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None}
    return torch.as_tensor(SimpleNamespace(__cuda_array_interface__=interface), device="cuda")


def tensor(arena: Arena, slot: Slot) -> Any:
    """The torch tensor that a slot describes."""
    import torch

    raw = arena.bytes_at(slot.offset, slot.bytes).view(getattr(torch, slot.dtype))
    return raw.as_strided(slot.shape, slot.strides)


def copy_on_gpu(target: Any, source: Any) -> None:
    """Copy the bytes of one torch tensor to another and wait. The driver's calls cost the host less than torch's."""
    from cuda.bindings import driver

    default_stream = 0
    checked(driver.cuMemcpyDtoDAsync(target.data_ptr(), source.data_ptr(), source.nbytes, default_stream))
    checked(driver.cuStreamSynchronize(default_stream))


def checked(result: tuple[Any, ...]) -> Any:
    """The result of a CUDA driver call; raises RuntimeError for an error."""
    error, *values = result
    if int(error) != 0:
        raise RuntimeError(f"the CUDA driver returned {error.name}")
    return values[0] if values else None
