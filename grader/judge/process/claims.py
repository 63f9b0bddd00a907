"""What a worker prints: it is read as it comes, and the beginning is kept."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from contextlib import AbstractContextManager
from typing import IO, Any

from grader.verdict import Failure

# What a worker says of itself, and how it died: untrusted, held to the shape and lengths of what the judge knows.

_KINDS = ("not_written", "compile", "exception", "illegal_access")
_LEAST_S, _MOST_S = 1e-9, 1e6  # of a round; the smallest floats are 0 when they are divided by its launches
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_STEERING = {code: None for code in _CONTROLS if chr(code) not in "\n\t"}


def time_of(claim: Any) -> float | None:
    """Seconds, where the claim is a time."""
    fits = type(claim) is float and _LEAST_S <= claim < _MOST_S
    return claim if fits else None


def failure_of(claim: Any) -> Failure:
    """The failure that is described, as far as it can be read."""
    if not isinstance(claim, dict):
        return Failure("exception", "The worker sent a failure that cannot be read.")
    kind = claim.get("kind")
    line = claim.get("line")
    return Failure(
        kind=kind if kind in _KINDS else "exception",
        message=_text(claim.get("message", ""), 500),
        line=line if type(line) is int and 0 < line < 1_000_000 else None,
        detail=_text(claim.get("detail", ""), 4000),
    )


def death(code: int | None, log: str) -> Failure:
    """What the exit status says; bubblewrap reports a signal as the shell does, by 128 and more."""
    if code is not None and 128 < code <= 128 + signal.SIGRTMAX:
        code = 128 - code
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        message = f"The process that ran it was ended by {name}."
        if name in ("SIGSEGV", "SIGBUS"):
            message = "The process that ran it crashed: it accessed memory that is not its own, or wrote to an input."
    elif code is None:
        message = "The process that ran it cut its connection to the grader, or read nothing from it, and was stopped."
    else:
        message = "The process that ran it ended itself before it answered."
    return Failure("crash", message, detail=log[-2000:])


def plain(text: str) -> str:
    """Text without what steers a terminal, or the direction in which it is read."""
    return text.encode("utf-8", "replace").decode().translate(_STEERING)


def _text(claim: Any, limit: int) -> str:
    return plain(claim[:limit]) if isinstance(claim, str) else ""


# What a worker prints: it is read as it comes, and the beginning is kept.

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
