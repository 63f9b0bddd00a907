"""Run a function in a forked process: it answers with a small dict, and all its other effects end with it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

_pending: list[Forked] | None = None  # what compiles a submission for a GPU that is not here

facts: list[dict[str, Any]] = []  # about compiled kernels, found in this process

_MOST_BYTES = 1 << 16  # of an answer


class Forked:
    """A function that runs in a copy of this process, with its output closed. It returns a dict, which `answer` reads.

    Nothing that the function does is seen here: neither its variables nor what it prints.
    """

    def __init__(self, work: Callable[[], dict[str, Any]]) -> None:
        self._reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about threads that a fork does not copy: the child needs none of them
            self._child = os.fork()
        if self._child == 0:
            try:
                os.setsid()
                nowhere = os.open(os.devnull, os.O_RDWR)
                for stream in range(3):
                    os.dup2(nowhere, stream)
                os.write(writer, json.dumps(work()).encode()[:_MOST_BYTES])
            finally:
                os._exit(0)
        os.close(writer)

    def answer(self, limit_s: float) -> dict[str, Any] | None:
        """Return the dict; None if there is none within `limit_s`, or if the function raised. Ends the process."""
        ends, said = time.monotonic() + limit_s, b""
        while (left_s := ends - time.monotonic()) > 0:
            if not select.select([self._reader], [], [], left_s)[0]:
                break
            if not (part := os.read(self._reader, _MOST_BYTES)):
                break
            said += part
        self.close()
        with contextlib.suppress(ValueError):
            found = json.loads(said)
            return found if isinstance(found, dict) else None
        return None

    def close(self) -> None:
        """End the process. A second call does nothing."""
        child, self._child = self._child, 0
        if child:
            os.close(self._reader)
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # a submission may have waited for it
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def enable() -> None:
    """Let `add` start processes: in a worker, but not in a notebook that simulates."""
    global _pending
    _pending = [] if _pending is None else _pending


def add(work: Callable[[], dict[str, Any]]) -> None:
    """Start to compile, if this process may; `work` returns a "failure", the reason why it is "absent", or "facts"."""
    if _pending is not None:
        _pending.append(Forked(work))


def result(limit_s: float) -> dict[str, Any]:
    """Wait for all that was added.

    Return the first "failure", or else all "facts", the names of the compiled "kernels", each answer's "code" and the
    first reason, "absent".
    """
    ends = time.monotonic() + limit_s
    answers = [each.answer(ends - time.monotonic()) for each in _pending or ()]
    why = (
        f"compiling did not end within {limit_s:.0f} s" if time.monotonic() >= ends else "the compiler's process ended"
    )
    found = [{"absent": why} if answer is None else answer for answer in answers]
    if failed := next((answer for answer in found if "failure" in answer), None):
        return failed
    absent = next((answer["absent"] for answer in found if "absent" in answer), "")
    kernels = [name for answer in found for name in answer.get("kernels", ())]
    every = [*facts, *(fact for answer in found for fact in answer.get("facts", ()))]
    codes = [answer["code"] for answer in found if "code" in answer]
    return {"absent": absent, "facts": every, "kernels": kernels, "codes": codes}
