"""A flag in shared memory: the arbiter raises it, the worker answers, both spin. A round trip costs about 1 µs."""

from __future__ import annotations

import mmap
import os

__all__ = ["Flag"]

_RAISED, _ANSWERED = 0, 1  # index of a 64-bit word


class Flag:
    """Two words: the number of the round that was asked for, and of the round that was answered."""

    BYTES = mmap.PAGESIZE

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, self.BYTES)
        self.words = memoryview(self._map).cast("q")

    @classmethod
    def create(cls) -> tuple[Flag, int]:
        """A new flag and the descriptor to hand over."""
        fd = os.memfd_create("flag", os.MFD_CLOEXEC)
        os.ftruncate(fd, cls.BYTES)
        return cls(fd), fd

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

    def close(self) -> None:
        self.words.release()
        self._map.close()
