"""What a worker prints: it is read as it comes, and the beginning is kept."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from contextlib import AbstractContextManager
from typing import IO, Any

from grader.judge.claims import plain

__all__ = ["LOG_BYTES", "Printed"]

LOG_BYTES = 16 << 10
_MOST_BYTES = 64 << 20  # that it may print; what is beyond the log is read and dropped
_LAST_WORDS_S = 5.0  # for what a process printed last to be read


class Printed:
    """Reads a pipe in a thread of its own, not while `quiet` is held by another."""

    def __init__(self, pipe: IO[bytes], quiet: AbstractContextManager[Any]) -> None:
        self.quiet = quiet
        self._pipe = pipe
        self._log = bytearray()
        self._count = 0
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    @property
    def log(self) -> str:
        """The beginning, up to `LOG_BYTES`."""
        return plain(self._log.decode("utf-8", "replace"))

    @property
    def too_much(self) -> str:
        """What is to be said where it printed more than it may; else nothing."""
        return f"printed more than {_MOST_BYTES >> 20} MiB" if self._count > _MOST_BYTES else ""

    def close(self) -> None:
        """Reads what is left of one whose processes have ended."""
        self._reader.join(timeout=_LAST_WORDS_S)
        if self._reader.is_alive():  # while another is timed it waits, and there is no later
            self._read_the_rest()
        self._pipe.close()

    def _drain(self) -> None:
        waiting = self._waiting()
        with contextlib.suppress(OSError, ValueError):
            while not self.too_much:
                waiting.poll()
                with self.quiet:
                    if not self._read():
                        return

    def _read_the_rest(self) -> None:
        waiting = self._waiting()
        with contextlib.suppress(OSError, ValueError):
            while not self.too_much and waiting.poll(0) and self._read():
                pass

    def _waiting(self) -> select.poll:
        waiting = select.poll()  # select() takes no descriptor above 1023
        waiting.register(self._pipe, select.POLLIN)
        return waiting

    def _read(self) -> int:
        """Bytes that there were to read; 0 at the end."""
        chunk = os.read(self._pipe.fileno(), 1 << 16)
        self._count += len(chunk)
        if len(self._log) < LOG_BYTES:
            self._log += chunk[: LOG_BYTES - len(self._log)]
        return len(chunk)
