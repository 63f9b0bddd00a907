"""A stream that waits for nobody: why an answer can be wrong here and right in a test that synchronises first."""

from __future__ import annotations

import re

__all__ = ["waits_for_nobody"]

_ASKS = (
    "It works on a stream of its own: does that wait for the current one, on which the inputs arrive? "
    "`stream.wait_stream(torch.cuda.current_stream())` comes before the first launch on it."
)
# Those that do not wait for the default stream by themselves.
_MADE = re.compile(r"\btorch\.cuda\.Stream\(|non_blocking=True\)|StreamNonBlocking|getStreamFromPool")
# That the current one waits for it is another matter.
_WAITS = re.compile(r"(?<!current_stream\(\)\.)wait_stream|wait_event|StreamWaitEvent|StreamWaitValue")


def waits_for_nobody(source: str) -> str:
    """A question where the text makes a stream and has none wait, else an empty text. For what is wrong already: a
    comment can fool it.
    """
    return _ASKS if _MADE.search(source) and not _WAITS.search(source) else ""
