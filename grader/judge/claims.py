"""What a worker says of itself, and how it died: untrusted, held to the shape and lengths of what the judge knows."""

from __future__ import annotations

import signal
from typing import Any

from grader.verdict import Failure

__all__ = ["death", "failure_of", "plain", "time_of"]

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
