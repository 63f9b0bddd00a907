"""The ladder as a chart, from SciPy to the FFT, with the ceilings that the hardware sets drawn in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grader.exercises.ladder import FREQUENCIES, SAMPLES
from grader.explore.nvrtc import NvrtcView, nvrtc_view
from grader.explore.picture import BLUE, DARK, GREY, ORANGE, PALE, Picture, finish
from grader.explore.published import PUBLISHED
from grader.explore.results import recorded

__all__ = ["H200", "V100", "Chip", "draw_ladder", "last_rung_view"]

_SPECIAL_A_CLOCK, _MULTIPLY_ADDS_A_CLOCK = 16, 128  # of an SM; the latter of Hopper
PUBLISHED_SAMPLES, PUBLISHED_SCIPY_MS = 1_675, 51_000.0
_BENCHES = ("ladder/numba", "ladder/cupy", "ladder/past")
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind a number, where a ceiling's line passes


@dataclass(frozen=True)
class Chip:
    """What a data sheet says of a GPU."""

    name: str
    multiprocessors: int
    ghz: float  # at most
    multiply_adds_a_clock: int = _MULTIPLY_ADDS_A_CLOCK  # of a multiprocessor

    def special_ms(self, samples: int = SAMPLES, each: int = 2) -> float:
        """The least time for `each` special functions a sample and frequency: the ceiling of the last rung."""
        return each * samples * FREQUENCIES / (_SPECIAL_A_CLOCK * self.multiprocessors * self.ghz * 1e9) * 1e3

    def multiply_add_ms(self, samples: int = SAMPLES, each: int = 8) -> float:
        """The least time for `each` multiply-adds a sample and frequency: what a rotation and four sums take."""
        a_second = self.multiply_adds_a_clock * self.multiprocessors * self.ghz * 1e9
        return each * samples * FREQUENCIES / a_second * 1e3


H200 = Chip("NVIDIA H200", 132, 1.98)
V100 = Chip("NVIDIA V100", 80, 1.53, 64)


def last_rung_view() -> NvrtcView:
    """The last rung's kernel in float32 with fast math, compiled."""
    from grader.worker.ladder_kernels import SOURCE

    return nvrtc_view(SOURCE.substitute(T="float", f="f"), "--use_fast_math")


def draw_ladder() -> Picture:
    """The rungs that were recorded; where none are, the published ones, with the ceilings of the GPU they ran on."""
    bars, chip, samples, origin = _recorded() or _published()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 1.5 + 0.33 * len(bars)), layout="constrained")
    axes = figure.add_subplot()
    names = [name for name, _ in bars]
    axes.barh(range(len(bars)), [ms for _, ms in bars], color=[_colour(name) for name in names], edgecolor=DARK)
    for place, (_, ms) in enumerate(bars):
        axes.text(ms * 1.08, place, f"{_shown(ms)} ms", va="center", fontsize=9.5, color=DARK, bbox=_PAPER)
    axes.set_yticks(range(len(bars)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(ms for _, ms in bars) / 3, max(ms for _, ms in bars) * 6)
    axes.set_xlabel(f"ms for {samples:,} samples × 2^20 frequencies, float32")
    special, adds = chip.special_ms(samples), chip.multiply_add_ms(samples)
    axes.axvline(special, color=DARK, linestyle="--", label=f"two special functions each: {special:.2g} ms")
    axes.axvline(adds, color=DARK, linestyle=":", label=f"eight multiply-adds each: {adds:.2g} ms")
    axes.legend(loc="lower right", fontsize=9, title=f"ceilings of one {chip.name}, by its data sheet")
    axes.set_title(origin, fontsize=9.5, loc="left", wrap=True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    said_of = " ".join(origin.split())
    said = ", ".join(f"{name} {_shown(ms)} ms" for name, ms in bars)
    alt = (
        f"The ladder on a logarithmic scale, {samples:,} samples and 2^20 frequencies: {said}. Two special functions a "
        f"sample and frequency take at least {special:.2g} ms, eight multiply-adds {adds:.2g} ms. {said_of}"
    )
    return finish(figure, alt, width=820)


def _recorded() -> tuple[list[tuple[str, float]], Chip, int, str] | None:
    found = [(bench, recorded(bench, "median_ms")) for bench in _BENCHES]
    if not found[-1][1].rows:
        return None
    rows: list[tuple[str, Any]] = [(_LIBRARIES[bench], row) for bench, table in found for row in table.rows]
    slow = [("", row) for _, row in rows if str(row["case"]).startswith("SciPy")]
    rows = slow[:1] + [(library, row) for library, row in rows if not str(row["case"]).startswith("SciPy")]
    bars = [
        (f"{library} {row['case'].removesuffix(', float32')}".replace("_", " ").strip(), float(row["value"]))
        for library, row in rows
        if str(row["case"]).endswith("float32") and row["metric"] == "median_ms"
    ]
    chip = next((chip for chip in (H200, V100) if chip.name in str(found[-1][1].rows[0]["gpu"])), H200)
    return bars, chip, SAMPLES, found[-1][1].origin


def _published() -> tuple[list[tuple[str, float]], Chip, int, str]:
    bars = [("SciPy", PUBLISHED_SCIPY_MS)]
    for library in ("Numba", "CuPy"):
        bars += [(f"{library} {rung}".replace("_", " "), ms) for rung, (_, ms, _) in PUBLISHED[library].items()]
    origin = (
        "Published for one V100, on which both ceilings are the same: its SMs do 64 multiply-adds in a clock cycle.\n"
        "No recorded result yet for this course's rungs, rotation and FFT."
    )
    return bars, V100, PUBLISHED_SAMPLES, origin


def _shown(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def _colour(name: str) -> str:
    for word, colour in (("Numba", PALE), ("CuPy", BLUE), ("SciPy", GREY)):
        if name.startswith(word):
            return colour
    return ORANGE


_LIBRARIES = {"ladder/numba": "Numba", "ladder/cupy": "CuPy", "ladder/past": ""}
