"""Displays for notebook cells: pictures with alt text, tables, sliders and source listings."""

from __future__ import annotations

import base64
import html
import inspect
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

# Okabe and Ito's colour-blind palette. The colours also differ in greyscale; where two areas touch, one is hatched.
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


def canvas(
    width: float, height: float, x: tuple[float, float] = (0, 1), y: tuple[float, float] = (0, 1), equal: bool = False
) -> tuple[Figure, Axes]:
    """Return an empty drawing of `width` × `height` inches without a frame; `x` and `y` are its limits, y downwards."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=x, ylim=y)
    if equal:
        axes.set_aspect("equal")
    return figure, axes


def write(
    axes: Axes, x: float, y: float, text: str, size: float, align: str = "center", color: str = DARK, **style: Any
) -> None:
    """Write text at half its height; `style` is matplotlib's."""
    axes.text(x, y, text, ha=align, va="center", fontsize=size, color=color, **style)


def chart(width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty plot of `width` × `height` inches, with the left and the lower axis only."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def rectangle(axes: Axes, corner: tuple[float, float], width: float, height: float, **style: Any) -> Rectangle:
    """Add a rectangle to `axes` and return it; `style` is matplotlib's."""
    from matplotlib.patches import Rectangle

    patch = Rectangle(corner, width, height, **style)
    axes.add_patch(patch)
    return patch


def finish(figure: Figure, alt: str, width: int = 720) -> Picture:
    """Turn a matplotlib figure into a Picture; the same figure gives the same bytes."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "grader", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return Picture(text.getvalue(), alt, width)


_MONOSPACE = "font-family:var(--jp-code-font-family, monospace); line-height:1.4; overflow-x:auto"


def code_html(text: str, style: str = "font-size:13px") -> str:
    """Return source code as HTML; `style` is additional CSS."""
    return f'<pre style="{_MONOSPACE}; {style}">{escape(text)}</pre>'


class Table:
    """A table: HTML in a notebook, aligned columns in a terminal. The first row of `_table()` is the head."""

    _left = 0  # this many columns are left-aligned in HTML

    def _table(self) -> Sequence[Sequence[str]]:
        raise NotImplementedError

    def _note(self) -> str:
        """A sentence below the table that says where the figures are from. A table without rows shows only this."""
        return ""

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                f"{text:{'<' if column < self._left else '>'}{width}}"
                for column, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in table
        ]
        return "\n".join([*(lines if len(table) > 1 else []), *([self._note()] if self._note() else [])])

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self._note())}</p>" if self._note() else ""
        head, *body = self._table()
        lines = "".join(self._html_row("td", row) for row in body)
        return f"<table>{self._html_row('th', head)}{lines}</table>{note}" if body else note

    def _html_row(self, tag: str, row: Sequence[str]) -> str:
        left = [" style='text-align:left'"] * self._left + [""] * len(row)
        return "<tr>" + "".join(f"<{tag}{left[at]}>{escape(text)}</{tag}>" for at, text in enumerate(row)) + "</tr>"


class Interactive:
    """A display that is an ipywidget in JupyterLab, and static where widgets cannot run."""

    def widget(self) -> Any:
        """A new widget. Raises ImportError without ipywidgets."""
        raise NotImplementedError

    def _still_html(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        still = {"text/plain": repr(self), "text/html": self._still_html()}
        try:
            shown = self.widget()._repr_mimebundle_()
        except (ImportError, AttributeError):
            return still
        return {**(shown or {}), **still}


@dataclass(frozen=True)
class Choices(Interactive):
    """`draw` with a slider for each argument. Sliders start at the first value.

    JupyterLab shows sliders. A terminal shows `first`, and so does an exported page, unless `stills` names the values
    of an only slider that the page compares.
    """

    draw: Callable[..., Picture]
    knobs: Mapping[str, Sequence[int]]
    labels: Mapping[str, str]
    stills: Sequence[int] = ()

    @property
    def first(self) -> Picture:
        """The picture of the first values."""
        return self.draw(**{name: values[0] for name, values in self.knobs.items()})

    def __repr__(self) -> str:
        return repr(self.first)

    def widget(self) -> Any:
        """The sliders above the picture; a new widget each time. Raises ImportError without ipywidgets."""
        import ipywidgets

        page = ipywidgets.HTML(self.first._repr_html_())
        layout = ipywidgets.Layout(width="34em")
        sliders = {
            name: ipywidgets.SelectionSlider(
                options=sorted(values), value=values[0], description=self.labels[name], layout=layout,
                style={"description_width": "14em"},
            )
            for name, values in self.knobs.items()
        }  # fmt: skip

        def redraw(change: Any) -> None:
            page.value = self.draw(**{name: slider.value for name, slider in sliders.items()})._repr_html_()

        for slider in sliders.values():
            slider.observe(redraw, names="value")
        return ipywidgets.VBox([*sliders.values(), page])

    def _still_html(self) -> str:
        if not self.stills:
            return self.first._repr_html_()
        (name,) = self.knobs
        return "".join(self.draw(**{name: value})._repr_html_() for value in self.stills)


_LISTING = "font-size:12px; margin:6px 0; white-space:pre"


@dataclass(frozen=True)
class SideBySide:
    """Two titled listings: side by side in a notebook, one below the other in a terminal."""

    titles: tuple[str, str]
    sources: tuple[str, str]

    def __repr__(self) -> str:
        parts = (f"# {title}\n{source}" for title, source in zip(self.titles, self.sources, strict=True))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        # Two columns, or one below the other in a narrow window.
        cell = "flex:1 1 26em; min-width:0; border:1px solid #888; border-radius:4px; padding:4px 10px"
        parts = "".join(
            f'<div style="{cell}"><b>{escape(title)}</b>{code_html(source, _LISTING)}</div>'
            for title, source in zip(self.titles, self.sources, strict=True)
        )
        return f'<div style="display:flex; flex-wrap:wrap; gap:12px">{parts}</div>'


def side_by_side(**kernels: Callable[..., Any]) -> SideBySide:
    """Show the source of two kernels: `side_by_side(Numba=…, Triton=…)`. It unwraps Numba and Triton kernels.

    Raises:
        ValueError: not exactly two were given.
    """
    if len(kernels) != 2:
        raise ValueError(
            "side_by_side takes exactly two kernels, each with its title: side_by_side(Numba=a, Triton=b)."
        )
    (left, a), (right, b) = kernels.items()
    return SideBySide((left, right), (_source(a), _source(b)))


def _source(kernel: Any) -> str:
    for attribute in ("py_func", "fn"):
        kernel = getattr(kernel, attribute, kernel)
    return inspect.getsource(inspect.unwrap(kernel)).rstrip()
