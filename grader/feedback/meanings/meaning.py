"""One row of the table of errors."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Advice", "Meaning"]


@dataclass(frozen=True)
class Meaning:
    """What an error whose text holds `pattern` means, and what to do.

    Where tools word different errors alike, the line that failed must hold `code` too. {0}, {1}, … are the groups of
    the pattern, then those of the code. A `title` says what is wrong where the error is a judgement of ours: the
    learner's code raised nothing.
    """

    pattern: str
    says: str
    do: str
    code: str = ""
    title: str = ""

    def advice(self, text: str, line: str = "") -> Advice | None:
        """What this row says of an error that the `line` of the submission raised, or None where it does not apply."""
        found = re.search(self.pattern, text)
        there = re.search(self.code, line) if self.code else None
        if found is None or (self.code and there is None):
            return None
        groups = [group or "" for match in (found, there) if match is not None for group in match.groups()]
        return Advice(self.says.format(*groups), self.do.format(*groups), self.title)


@dataclass(frozen=True)
class Advice:
    """What an error means, and what to do about it: a sentence or two each."""

    says: str
    do: str
    title: str = ""
