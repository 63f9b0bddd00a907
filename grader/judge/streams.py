"""A stream that waits for nobody: why an answer can be wrong here and right in a test that synchronises first."""

from __future__ import annotations

import re

__all__ = ["UNJOINED", "unjoined"]

UNJOINED = (
    "It works on a stream of its own, and nothing in it lets that stream wait for the current one, on which the inputs "
    "arrive: `stream.wait_stream(torch.cuda.current_stream())` comes before the first launch on it."
)
_MADE = re.compile(r"\bStream\(|\b(?:cuda|cu)StreamCreate")  # torch's, CuPy's, Numba's, C++'s
_WAITS = re.compile(r"wait_stream|wait_event|StreamWaitEvent|[sS]ynchronize")


def unjoined(source: str) -> bool:
    """Whether the text makes a stream and has none wait. For what is wrong already: a comment can fool it."""
    return bool(_MADE.search(source)) and not _WAITS.search(source)
