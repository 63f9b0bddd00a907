"""Arenas: memory that the arbiter owns and a worker maps, on the host or on a GPU.

Host: a `memfd`; the input arena is sealed against any writable mapping but the arbiter's. GPU: CUDA virtual memory with
file-descriptor handles (legacy CUDA IPC fails across user ids and in a sandbox). A worker maps inputs read-only: a
kernel that writes to one dies of an illegal access.
"""

from __future__ import annotations

import mmap
import os
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from grader.protocol.flag import seal, sealed_memory

# Where each tensor lies in an arena: guard, tensor, guard, tensor, guard …, all multiples of 512 bytes.

POISON_BYTE = 0xFF  # around and in outputs: NaN in every floating-point type, and no NaN that arithmetic makes
INPUT_GUARD = 0x7FF0  # 16-bit words around inputs: NaN in every type too, and another: a copy of it into a guard shows
GUARD_BYTES = 128 << 10  # wider than the widest block that a kernel of the course masks: 32 768 float32
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
        """Elements from the first to one past the last."""
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
    """A slot for a tensor that begins after a guard at `start`, and the first byte after its own guard.

    It is row-major; `transposed`, it is a view of one whose axes stand the other way round.
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


# Arenas: memory that the arbiter owns and a worker maps, on the host or on a GPU.
#
# Host: a `memfd`; the input arena is sealed against any writable mapping but the arbiter's. GPU: CUDA virtual memory with
# file-descriptor handles (legacy CUDA IPC fails across user ids and in a sandbox). A worker maps inputs read-only: a
# kernel that writes to one dies of an illegal access.

_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h


class HostArena:
    """Shared memory on the host. `read_only` in a worker; the arbiter's own mapping is always writable."""

    kind = "host"

    def __init__(self, fd: int, size: int, read_only: bool) -> None:
        self.fd, self.size = fd, size
        protection = mmap.PROT_READ if read_only else mmap.PROT_READ | mmap.PROT_WRITE
        self._map = mmap.mmap(fd, size, prot=protection)

    @classmethod
    def create(cls, size: int, sealed: bool) -> HostArena:
        """A new arena; `sealed`: whoever gets the descriptor can only read."""
        fd = sealed_memory("arena", size)
        arena = cls(fd, size, read_only=False)
        seal(fd, _SEAL_FUTURE_WRITE if sealed else 0)
        weakref.finalize(arena, os.close, fd)
        return arena

    def bytes_at(self, offset: int, count: int) -> Any:
        """A torch uint8 tensor over these bytes, without a copy."""
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of read-only buffers; read-only is the point
            return torch.frombuffer(self._map, dtype=torch.uint8, count=count, offset=offset)

    def clear(self) -> None:
        """Makes all bytes 0; their memory is given back."""
        self._map.madvise(mmap.MADV_REMOVE)


class CudaArena:
    """CUDA virtual memory on GPU 0 of those visible, mapped into the current process."""

    kind = "cuda"

    def __init__(self, handle: Any, fd: int, size: int, read_only: bool) -> None:
        from cuda.bindings import driver

        self.fd, self.size, self._handle = fd, size, handle
        self.address = int(checked(driver.cuMemAddressReserve(size, 0, 0, 0)))
        checked(driver.cuMemMap(self.address, size, 0, handle, 0))
        access = driver.CUmemAccessDesc()
        access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = 0
        flags = driver.CUmemAccess_flags
        access.flags = flags.CU_MEM_ACCESS_FLAGS_PROT_READ if read_only else flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        checked(driver.cuMemSetAccess(self.address, size, [access], 1))

    @classmethod
    def create(cls, size: int, sealed: bool = False) -> CudaArena:
        """A new arena of at least `size` bytes (rounded up to the allocation granularity).

        `sealed` is for symmetry with the host: whoever has the handle may set access, so the arbiter also keeps copies.
        """
        from cuda.bindings import driver

        prop = driver.CUmemAllocationProp()
        prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        prop.location.id = 0
        fd_type = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        prop.requestedHandleTypes = fd_type
        minimum = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        unit = checked(driver.cuMemGetAllocationGranularity(prop, minimum))
        size = -(-size // unit) * unit
        handle = checked(driver.cuMemCreate(size, prop, 0))
        fd = int(checked(driver.cuMemExportToShareableHandle(handle, fd_type, 0)))
        return cls(handle, fd, size, read_only=False)

    @classmethod
    def open(cls, fd: int, size: int, read_only: bool) -> CudaArena:
        """The arena behind a descriptor that came from another process."""
        from cuda.bindings import driver

        fd_type = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        handle = checked(driver.cuMemImportFromShareableHandle(fd, fd_type))
        return cls(handle, fd, size, read_only)

    def bytes_at(self, offset: int, count: int) -> Any:
        """A torch uint8 tensor over these bytes, with a storage of its own and without a copy."""
        import torch

        return torch.as_tensor(_Interface(self.address + offset, count), device="cuda")

    def clear(self) -> None:
        """Makes all bytes 0, in the order of the current stream."""
        self.bytes_at(0, self.size).zero_()


class _Interface:
    """The least that `torch.as_tensor` needs to see device memory."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def tensor(arena: HostArena | CudaArena, slot: Slot) -> Any:
    """The torch tensor that a slot describes."""
    import torch

    raw = arena.bytes_at(slot.offset, slot.bytes).view(getattr(torch, slot.dtype))
    return raw.as_strided(slot.shape, slot.strides)


def copy_on_gpu(target: Any, source: Any) -> None:
    """Copies the bytes of one torch tensor to another and waits: by the driver's own calls, which leave the host less
    to do than torch's."""
    from cuda.bindings import driver

    stream = 0  # the default one
    checked(driver.cuMemcpyDtoDAsync(target.data_ptr(), source.data_ptr(), source.nbytes, stream))
    checked(driver.cuStreamSynchronize(stream))


def checked(result: tuple[Any, ...]) -> Any:
    """What a call of the CUDA driver answered; RuntimeError where it answered an error."""
    error, *values = result
    if int(error) != 0:
        raise RuntimeError(f"the CUDA driver answered {error.name}")
    return values[0] if values else None
