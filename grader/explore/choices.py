"""A picture with knobs: widgets where a notebook can show them, and the same picture as it is drawn first elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.explore.picture import Picture

__all__ = ["Choices"]


@dataclass(frozen=True)
class Choices:
    """`draw` with a knob for each of its arguments; the first value of each is what is drawn first.

    In JupyterLab the knobs are sliders. A notebook that was turned into a page, and a terminal, have `first`.
    """

    draw: Callable[..., Picture]
    knobs: Mapping[str, Sequence[int]]
    labels: Mapping[str, str]

    @property
    def first(self) -> Picture:
        """The picture of the first values."""
        return self.draw(**{name: values[0] for name, values in self.knobs.items()})

    def __repr__(self) -> str:
        return repr(self.first)

    def widget(self) -> Any:
        """The knobs above the picture; a new one each time. Raises ImportError where there is no ipywidgets."""
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

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        still = {"text/plain": repr(self), "text/html": self.first._repr_html_()}
        try:
            shown = self.widget()._repr_mimebundle_()
        except (ImportError, AttributeError):
            return still
        return {**(shown or {}), **still}
