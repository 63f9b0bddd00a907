"""One row of the table of errors."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Advice", "Meaning"]


@dataclass(frozen=True)
class Meaning:
    """What an error whose text holds `pattern` means, and what to do; {0}, {1}, … are the pattern's groups."""

    pattern: str
    says: str
    do: str


@dataclass(frozen=True)
class Advice:
    """What an error means, and what to do about it: a sentence or two each."""

    says: str
    do: str
