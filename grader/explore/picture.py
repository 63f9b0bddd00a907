"""A picture that says what it shows: vector graphics with alt text, in colours that survive greyscale."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLUE", "DARK", "GREY", "LIGHT", "ORANGE", "PALE", "Picture", "canvas", "finish"]

# Okabe and Ito's colours for the colour-blind. Their brightness differs, so they differ in greyscale too; where
# two areas must be told apart one of them is hatched as well.
BLUE = "#0072B2"
ORANGE = "#E69F00"
DARK = "#222222"
GREY = "#8C8C8C"
PALE = "#BBDDF0"
LIGHT = "#F4F4F4"


@dataclass(frozen=True)
class Picture:
    """An SVG image and its alt text. JupyterLab shows the image, a terminal the alt text."""

    svg: str
    alt: str
    width: int = field(default=720)

    def __post_init__(self) -> None:
        if len(self.alt.split()) < 3:
            raise ValueError("A picture needs alt text: a sentence that says what it shows.")

    def __repr__(self) -> str:
        return f"[Picture: {self.alt}]"

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg.encode()).decode()
        style = f"width:{self.width}px; max-width:100%; background:white; padding:6px"
        alt = html.escape(self.alt, quote=True)
        return f'<img style="{style}" alt="{alt}" src="data:image/svg+xml;base64,{data}">'

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of `width` × `height` inches whose axes are drawing units, y downwards and without frame."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    return figure, axes


def finish(figure: Figure, alt: str, width: int = 720) -> Picture:
    """Turn a matplotlib figure into a Picture; the same figure gives the same bytes."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "grader", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return Picture(text.getvalue(), alt, width)
