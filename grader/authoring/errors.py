"""The one error of this package."""

from __future__ import annotations

from grader.errors import GraderError

__all__ = ["SourceError"]


class SourceError(GraderError):
    """A source notebook, or a number that it asks for, from which no course notebook can be made."""
