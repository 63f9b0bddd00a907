"""A flag in shared memory: the arbiter raises it, the worker answers, both spin. A round trip costs about 1 µs.

The GPU can wait for it and answer, too: see `grader.worker.stopwatch`.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os

_ADD_SEALS, _SEAL, _SHRINK, _GROW = 1033, 0x1, 0x2, 0x4  # linux/fcntl.h

_RAISED, _ANSWERED, _QUEUED = 0, 1, 2  # index of a 64-bit word


def sealed_memory(name: str, size: int) -> int:
    """A descriptor of shared memory whose size nobody can change: a shorter one would kill whoever reads it mapped."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, _ADD_SEALS, _SHRINK | _GROW)
    return fd


def seal(fd: int, more: int = 0) -> None:
    """Adds `more` seals, and closes the list: nobody can add any that would hinder the next worker."""
    fcntl.fcntl(fd, _ADD_SEALS, more | _SEAL)


class Flag:
    """Three words: the number of the round that was asked for, of the round that was answered, and of the round for
    which the worker has done all that it can before the flag."""

    BYTES = mmap.PAGESIZE
    ANSWERED_AT = 8 * _ANSWERED  # bytes from its start

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, self.BYTES)
        self.words = memoryview(self._map).cast("q")

    @classmethod
    def create(cls) -> tuple[Flag, int]:
        """A new flag and the descriptor to hand over."""
        fd = sealed_memory("flag", cls.BYTES)
        seal(fd)
        return cls(fd), fd

    @property
    def address(self) -> int:
        """Where this process sees the word that is raised; `ANSWERED_AT` bytes on is that of the answer."""
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
        """Whether the answer has come, after up to `spins` looks (about 100 µs)."""
        words = self.words
        return any(words[_ANSWERED] >= number for _ in range(spins))

    def queue(self, number: int) -> None:
        """The worker has done all that it can before the flag is raised."""
        self.words[_QUEUED] = number

    def queued(self, number: int) -> bool:
        """Whether it has, or has answered without."""
        return self.words[_QUEUED] >= number or self.words[_ANSWERED] >= number

    def close(self) -> None:
        self.words.release()
        self._map.close()
