"""Untrusted data from a worker: its claims, cut to known shapes and lengths, its exit status and its output."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO, Any

from grader.verdict import Failure, Finding

_KINDS = ("not_written", "not_simulated", "compile", "exception", "illegal_access", "fails_on_gpu")
_MOST_OBSERVED = 4  # of one round
_LEAST_S, _MOST_S = 1e-9, 1e6  # of a round: the smallest floats become 0 when divided by its launches
LOG_BYTES = 16 << 10
_MOST_BYTES = 64 << 20  # of output; what exceeds the log is read and dropped
_LAST_WORDS_S = 5.0  # time to read the last output of a process that has ended
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_STEERING = {code: None for code in _CONTROLS if chr(code) not in "\n\t"}


def time_of(claim: Any) -> float | None:
    """Return the claimed seconds, or None if the claim is not a valid time."""
    fits = type(claim) is float and _LEAST_S <= claim < _MOST_S
    return claim if fits else None


def failure_of(claim: Any) -> Failure:
    """Return the claimed failure, as far as it is readable."""
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


def reason_of(claim: Any) -> str:
    """Return a claimed reason on one line, "" if there is none."""
    return " ".join(_text(claim, 200).split())


def facts_of(claim: Any) -> list[dict[str, int]]:
    """Return the claimed facts about compiled kernels, as far as they are numbers."""
    listed = claim[:100] if isinstance(claim, list) else []
    plain = [each for each in listed if isinstance(each, dict)]
    return [
        {key: value for key, value in each.items() if isinstance(key, str) and isinstance(value, int)} for each in plain
    ]


def observed_of(claim: Any) -> tuple[tuple[Failure, ...], tuple[Finding, ...], str, str]:
    """Return what a simulator claims to have observed: failures on a GPU, findings, why a result is NaN, or "", and an
    integer that overflowed, or "".
    """
    failures, findings, cause, overflow = [], [], "", ""
    for each in claim[:_MOST_OBSERVED] if isinstance(claim, list) else ():
        if not isinstance(each, dict):
            continue
        failure = failure_of(each)
        if each.get("kind") == "cause":
            cause = cause or failure.message
        elif each.get("kind") == "overflow":
            overflow = overflow or failure.message
        elif failure.message and failure.kind in ("fails_on_gpu", "illegal_access"):
            failures.append(replace(failure, advice=_text(each.get("advice", ""), 500)))
        elif failure.message:
            where = f"Line {failure.line}: " if failure.line else ""
            findings.append(Finding("access", f"{where}{failure.message}", failure.line))
    return tuple(failures), tuple(findings), cause, overflow


def death(code: int | None, log: str) -> Failure:
    """Describe an exit status. Like a shell, bubblewrap reports a signal n as 128 + n."""
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
    """Return the text without control characters for terminals or text direction."""
    return text.encode("utf-8", "replace").decode().translate(_STEERING)


def _text(claim: Any, limit: int) -> str:
    return plain(claim[:limit]) if isinstance(claim, str) else ""


class Printed:
    """Reads a worker's output in a thread, but not while another thread holds `quiet`."""

    def __init__(self, pipe: IO[bytes], quiet: AbstractContextManager[Any]) -> None:
        self.quiet = quiet
        self._pipe = pipe
        self._log = bytearray()
        self._count = 0
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    @property
    def log(self) -> str:
        """The beginning of the output, up to `LOG_BYTES`."""
        return plain(self._log.decode("utf-8", "replace"))

    @property
    def too_much(self) -> str:
        """A message if it printed too much, else ""."""
        return f"printed more than {_MOST_BYTES >> 20} MiB" if self._count > _MOST_BYTES else ""

    def close(self) -> None:
        """Read the rest of the output, after the processes have ended."""
        self._reader.join(timeout=_LAST_WORDS_S)
        if self._reader.is_alive():  # it waits while another worker is timed
            self._drain(limit_ms=0)
        self._pipe.close()

    def _drain(self, limit_ms: int | None = None) -> None:
        """Read until the end; with a limit, only as long as there is output, and regardless of `quiet`."""
        waiting = select.poll()  # select() takes no descriptor above 1023
        waiting.register(self._pipe, select.POLLIN)
        with contextlib.suppress(OSError, ValueError):
            while not self.too_much and waiting.poll(limit_ms):
                with self.quiet if limit_ms is None else contextlib.nullcontext():
                    chunk = os.read(self._pipe.fileno(), 1 << 16)
                if not chunk:
                    return
                self._count += len(chunk)
                self._log += chunk[: LOG_BYTES - len(self._log)]
