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

__all__ = ["NO_TEX", "code", "css", "markup", "note"]

# Classes whose text MathJax 2 and 3 leave alone. A learner's line may hold `$` and `\href`, which makes links.
NO_TEX = "tex2jax_ignore mathjax_ignore"


@functools.cache
def css() -> Markup:
    """The style sheet, for everything inside a `.gr-report`: JupyterLab's colours, light or dark, with fallbacks."""
    text = (resources.files("grader.feedback") / "templates" / "report.css").read_text(encoding="utf-8")
    return markup(re.sub(r"\s*\n\s*", " ", text))


def note(title: str, sentence: str) -> Markup:
    """A title and a sentence, either of which may hold a stranger's text."""
    return markup(f'<section class="{NO_TEX}"><p><strong>{code(title)}</strong></p><p>{code(sentence)}</p></section>')


def code(text: str) -> Markup:
    """Escaped text in which `this` is set as code."""
    return markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(clean(text))))


def markup(text: str) -> Markup:
    """Text that is HTML already."""
    from markupsafe import Markup

    return Markup(text)
