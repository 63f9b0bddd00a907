"""What an inner loop spends its instructions on, a sample at a time: arithmetic, loads, and addresses."""

from __future__ import annotations

import re

from grader.explore.ladder_code import TITLES, ladder_loop
from grader.explore.machine_code import MachineCode
from grader.explore.picture import BLUE, DARK, GREY, ORANGE, PALE, Picture, finish

__all__ = ["KINDS", "draw_loops", "loop_parts"]

KINDS = {  # in the order of the picture; the first that fits counts
    "sine and cosine": r"MUFU\.(SIN|COS)",
    "float32 arithmetic": r"F(MUL|FMA|ADD)\b",
    "loads": r"LD[GS]\b",
    "indices, addresses and the loop": "",
}
_LOOKS = ((ORANGE, ""), (BLUE, ""), (PALE, "//"), (GREY, "xx"))


def loop_parts(code: MachineCode) -> dict[str, float]:
    """Instructions of the loop over the samples, for one sample, by what they are for.

    Raises:
        ValueError: the kernel's sines are no single instructions, so that its passes cannot be told.
    """
    if code.per_sample is None:
        raise ValueError(f"{code.title} takes no sines by single instructions: choose a kernel with fast math.")
    samples = len(code.loop) / code.per_sample
    counts = dict.fromkeys(KINDS, 0)
    for line in code.loop:
        bare = re.sub(r"^@!?U?P\w+\s+", "", line)
        counts[next(kind for kind, pattern in KINDS.items() if re.match(pattern, bare))] += 1
    return {kind: count / samples for kind, count in counts.items()}


def draw_loops(*rungs: str) -> Picture:
    """A bar for each rung, as long as its loop is for one sample; "fastmath", "unsigned" and "cuda fast" are known."""
    from matplotlib.figure import Figure

    parts = {TITLES[rung]: loop_parts(ladder_loop(rung)) for rung in rungs}
    figure = Figure(figsize=(9, 0.75 * len(parts) + 1.3), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    for row, counts in enumerate(parts.values()):
        left = 0.0
        for (kind, count), (colour, hatch) in zip(counts.items(), _LOOKS, strict=True):
            label = kind if row == 0 else None
            axes.barh(row, count, left=left, color=colour, hatch=hatch, edgecolor=DARK, linewidth=0.6, label=label)
            left += count
        axes.text(left + 0.3, row, f"{left:g}", va="center")
    axes.set_yticks(range(len(parts)), parts)
    axes.invert_yaxis()
    axes.set_xlabel("instructions of the inner loop, for one sample")
    axes.legend(loc="lower right", frameon=False)
    said = "; ".join(
        f"{title}: {sum(counts.values()):g}, {counts['indices, addresses and the loop']:g} of them for indices, "
        "addresses and the loop"
        for title, counts in parts.items()
    )
    return finish(figure, f"Instructions of the inner loop, for one sample. {said}.")
