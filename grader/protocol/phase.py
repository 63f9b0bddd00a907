"""One shared word: whether a worker is compiling. The judge limits this time apart from the time of what was compiled.

The worker writes it, so it is a claim: it can move a submission's time from one limit to another, but not past both.
"""

from __future__ import annotations

import mmap
import os

from grader.protocol.flag import seal, sealed_memory


class Phase:
    """The word, in this process's memory."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, mmap.PAGESIZE)

    @classmethod
    def create(cls) -> tuple[Phase, int]:
        """A new word and its descriptor."""
        fd = sealed_memory("phase", mmap.PAGESIZE)
        seal(fd)
        return cls(fd), fd

    @classmethod
    def take(cls, fd: int) -> Phase:
        """The word of a descriptor, which is closed."""
        try:
            return cls(fd)
        finally:
            os.close(fd)

    @property
    def compiling(self) -> bool:
        return self._map[0] != 0

    @compiling.setter
    def compiling(self, value: bool) -> None:
        self._map[0] = value

    def close(self) -> None:
        self._map.close()
