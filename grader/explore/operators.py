"""What PyTorch knows of an operator: its schema, its kernel, its fake and its gradient, and who asks for which."""

from __future__ import annotations

from typing import Any

from grader.explore.picture import BLUE, DARK, GREY, PALE, Picture, canvas, finish

__all__ = ["draw_operator", "registered"]

_PARTS = (  # who asks, the part, what it answers
    ("a call", "kernel", "the values"),
    ("torch.compile", "fake", "shape, type, strides"),
    ("backward()", "gradient", "what reaches the inputs"),
)
_ROW = 1.1
_MOST_LETTERS = 58


def registered(operator: Any) -> dict[str, bool]:
    """Whether an operator that `torch.library.custom_op` returned has a "kernel", a "fake" and a "gradient".

    Raises:
        TypeError: it is something else.
    """
    from torch._library.custom_ops import CustomOpDef

    if not isinstance(operator, CustomOpDef):
        raise TypeError(f"This takes what `torch.library.custom_op` returned, and was given {type(operator).__name__}.")
    found: Any = operator  # what was registered is kept in attributes that are torch's own
    return {
        "kernel": bool(found._backend_fns),
        "fake": found._abstract_fn is not None,
        "gradient": found._backward_fn is not None,
    }


def draw_operator(operator: Any) -> Picture:
    """The parts of an operator that are registered, those that are missing, and who asks for them.

    Raises:
        TypeError: it is not what `torch.library.custom_op` returned.
    """
    from matplotlib.patches import Rectangle

    there = registered(operator)
    schema = str(operator._opoverload._schema)
    figure, axes = canvas(7.2, 3.1)
    axes.set_xlim(0, 7.2)
    axes.set_ylim(4.3, 0)
    axes.add_patch(Rectangle((2.15, 0.1), 4.95, 4.1, facecolor="none", edgecolor=BLUE, linewidth=2.2))
    size = min(9.5, 9.5 * _MOST_LETTERS / len(schema))  # so that it stays within the frame
    axes.text(4.62, 0.5, schema, ha="center", va="center", fontsize=size, family="monospace", color=DARK)
    for row, (asks, part, answer) in enumerate(_PARTS):
        top = 0.95 + row * _ROW
        box = Rectangle((2.4, top), 1.7, 0.8, facecolor=PALE if there[part] else "white", edgecolor=DARK, linewidth=1.4)
        if not there[part]:
            box.set(hatch="////", linestyle="--", edgecolor=GREY)
        axes.add_patch(box)
        behind = None if there[part] else {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.text(3.25, top + 0.4, part, ha="center", va="center", fontsize=12, color=DARK, bbox=behind)
        axes.text(1.25, top + 0.4, asks, ha="right", va="center", fontsize=11, color=DARK)
        style = {"arrowstyle": "-|>", "color": DARK, "linewidth": 1.4, "linestyle": "-" if there[part] else "--"}
        axes.annotate("", (2.38, top + 0.4), (1.35, top + 0.4), arrowprops=style)
        says = f"answers: {answer}" if there[part] else "not registered"
        axes.text(4.3, top + 0.4, says, ha="left", va="center", fontsize=11, color=DARK)
    missing = [part for part in there if not there[part]]
    alt = (
        f"The operator {schema}. A call asks its kernel, torch.compile asks its fake, backward() asks its gradient. "
        + (f"Not registered, and hatched: {' and '.join(missing)}." if missing else "All three are registered.")
    )
    return finish(figure, alt, width=680)
