"""The look that reports and overviews share, and text set as HTML."""

from __future__ import annotations

import functools
import html
import re
from importlib import resources
from typing import TYPE_CHECKING

from grader.feedback.words import clean

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["code", "css", "markup"]


@functools.cache
def css() -> Markup:
    """The style sheet, for everything inside a `.gr-report`: JupyterLab's colours, light or dark, with fallbacks."""
    text = (resources.files("grader.feedback") / "templates" / "report.css").read_text(encoding="utf-8")
    return markup(re.sub(r"\s*\n\s*", " ", text))


def code(text: str) -> Markup:
    """Escaped text in which `this` is set as code."""
    return markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(clean(text))))


def markup(text: str) -> Markup:
    """Text that is HTML already."""
    from markupsafe import Markup

    return Markup(text)
