"""Two pieces of source side by side."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

__all__ = ["SideBySide", "side_by_side"]

_CODE = (
    "font-family:var(--jp-code-font-family, monospace); font-size:12px; line-height:1.4; margin:6px 0; "
    "white-space:pre; overflow-x:auto"
)


@dataclass(frozen=True)
class SideBySide:
    """Two titled listings; HTML in a notebook, one below the other in a terminal."""

    titles: tuple[str, str]
    sources: tuple[str, str]

    def __repr__(self) -> str:
        parts = (f"# {title}\n{source}" for title, source in zip(self.titles, self.sources, strict=True))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        # One column each, and one below the other where the window is narrow.
        cell = "flex:1 1 26em; min-width:0; border:1px solid #888; border-radius:4px; padding:4px 10px"
        parts = "".join(
            f'<div style="{cell}"><b>{escape(title)}</b><pre style="{_CODE}">{escape(source)}</pre></div>'
            for title, source in zip(self.titles, self.sources, strict=True)
        )
        return f'<div style="display:flex; flex-wrap:wrap; gap:12px">{parts}</div>'


def side_by_side(**kernels: Callable[..., Any]) -> SideBySide:
    """Show the source of two kernels, `side_by_side(Numba=…, Triton=…)`. They may be compiled by Numba or Triton.

    Raises:
        ValueError: not exactly two were given.
    """
    if len(kernels) != 2:
        raise ValueError(
            "side_by_side wants exactly two kernels, each with its title: side_by_side(Numba=a, Triton=b)."
        )
    (left, a), (right, b) = kernels.items()
    return SideBySide((left, right), (_source(a), _source(b)))


def _source(kernel: Any) -> str:
    for attribute in ("py_func", "fn"):
        kernel = getattr(kernel, attribute, kernel)
    return inspect.getsource(inspect.unwrap(kernel)).rstrip()
