"""A flag in shared memory: the judge raises it, the worker answers, and both spin. A round trip takes about 1 µs.

The GPU can also wait for the flag and answer: see `grader.worker.stopwatch`.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os

_ADD_SEALS, _SEAL, _SHRINK, _GROW = 1033, 0x1, 0x2, 0x4  # linux/fcntl.h

_RAISED, _ANSWERED, _QUEUED = 0, 1, 2  # index of a 64-bit word


def sealed_memory(name: str, size: int) -> int:
    """A descriptor of shared memory with a fixed size; reading a mapping beyond the end would kill the process."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, _ADD_SEALS, _SHRINK | _GROW)
    return fd


def seal(fd: int, more: int = 0) -> None:
    """Add `more` seals, then forbid new ones, which could block the next worker."""
    fcntl.fcntl(fd, _ADD_SEALS, more | _SEAL)


class Flag:
    """Three words with round numbers: the last round raised, the last one answered, and the last one prepared."""

    BYTES = mmap.PAGESIZE
    ANSWERED_AT = 8 * _ANSWERED  # offset in bytes

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, self.BYTES)
        self.words = memoryview(self._map).cast("q")

    @classmethod
    def create(cls) -> tuple[Flag, int]:
        """A new flag and its descriptor."""
        fd = sealed_memory("flag", cls.BYTES)
        seal(fd)
        return cls(fd), fd

    @property
    def address(self) -> int:
        """The address of the raised word in this process; the answer is `ANSWERED_AT` bytes further."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def raise_(self, number: int) -> None:
        self.words[_RAISED] = number

    def wait_raised(self, number: int) -> None:
        words = self.words
        while words[_RAISED] < number:
            pass

    def answer(self, number: int) -> None:
        self.words[_ANSWERED] = number

    def answered(self, number: int, spins: int = 2000) -> bool:
        """Whether the worker has answered; reads up to `spins` times (about 100 µs)."""
        words = self.words
        return any(words[_ANSWERED] >= number for _ in range(spins))

    def queue(self, number: int) -> None:
        """Called by the worker when it has done all that it can before the flag is raised."""
        self.words[_QUEUED] = number

    def queued(self, number: int) -> bool:
        """Whether the worker is prepared for this round, or has answered it."""
        return self.words[_QUEUED] >= number or self.words[_ANSWERED] >= number

    def close(self) -> None:
        self.words.release()
        self._map.close()
