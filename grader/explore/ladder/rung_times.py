"""Times of the Lomb–Scargle ladder: a learner's rungs, the published ones, and a chart."""

from __future__ import annotations

import linecache
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median_high
from typing import Any

from grader.exercise import Case
from grader.exercises.numba_cupy.ladder_cases import FREQUENCIES, SAMPLES, draw, ladder_case, oracle
from grader.explore.drawing.displays import BLUE, DARK, GREY, LIGHT, ORANGE, PALE, Picture, Table, chart, finish, write
from grader.explore.drawing.recorded_results import Recorded, recorded
from grader.explore.ladder.machine_code import NvrtcView, nvrtc_view
from grader.explore.profiling.call_timing import event_ms
from grader.judge.checking.buffers import generator
from grader.words import plural

_REPEATS = 20
_ERRORS = "Errors are divided by the number of samples."
_KEPT = " The first call compiles only what CuPy has not compiled before."
_SMALL = (70, 259)  # samples and frequencies if there is no GPU
_OF_SCIPY = 1 << 9  # frequencies that are timed; SciPy's time is proportional to their number


@dataclass(frozen=True)
class Rung:
    """One row. A value that was not measured is None; `note` says why a rung has no values."""

    name: str
    first_call_ms: float | None = None
    median_ms: float | None = None
    registers: int | None = None
    speedup: float | None = None
    error: float | None = None
    note: str = ""


@dataclass(frozen=True, repr=False)
class Climb(Table):
    """The rungs in a table, and the machine they were measured on."""

    rungs: tuple[Rung, ...]
    origin: str

    def _table(self) -> list[list[str]]:
        timed = any(rung.median_ms is not None for rung in self.rungs)
        columns = ["first call, ms", "later, ms", "registers", "times SciPy's direct sums"] if timed else []
        rows = [["rung", *columns, "error"]]
        for rung in self.rungs:
            values = (rung.first_call_ms, rung.median_ms, rung.registers, rung.speedup) if timed else ()
            times = map(_number, values, (",.1f", ",.3g", "d", ",.0f"))
            rows.append([rung.name.replace("_", " "), *times, rung.note or _number(rung.error, ".1e")])
        return rows

    def _note(self) -> str:
        return self.origin


def climb_cupy(**rungs: Callable[..., None]) -> Climb:
    """Call each function on the same samples. Without a GPU only the error is measured, on a small case.

    The error is the largest difference from a float64 result, divided by the number of samples. Each function runs
    with the names of its own cell, as in grading, so several cells may each define `source` or `kernels`.
    """
    import torch

    from grader.worker.arrays import cupy_arrays

    on_gpu = torch.cuda.is_available()
    samples, count = (SAMPLES, FREQUENCIES) if on_gpu else _SMALL
    case = ladder_case(samples, count)
    tensors = _tensors(case, "cuda" if on_gpu else "cpu")
    expected = oracle({name: tensors[name].double() for name in ("t", "y", "freqs")})
    slow_ms = scipy_ms(tensors) if on_gpu else None
    found = tuple(
        _rung(name, _alone(function), cupy_arrays(*tensors.values()), tensors["out"], expected, slow_ms)
        for name, function in rungs.items()
    )
    where = torch.cuda.get_device_name() if on_gpu else "this machine's CPU: nothing is timed without a GPU"
    return Climb(found, f"{case.name}, float32, on {where}.{_KEPT if on_gpu else ''} {_ERRORS}")


def _alone(function: Callable[..., None]) -> Callable[..., None]:
    """The function as its cell alone defines it; unchanged if the cell's text is not available."""
    code = getattr(function, "__code__", None)
    if code is None or function.__module__ != "__main__" or not (lines := linecache.getlines(code.co_filename)):
        return function
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile("".join(lines), code.co_filename, "exec"), namespace)  # the learner's own cell, again
    except Exception:
        return function
    return namespace.get(function.__name__, function)  # type: ignore[no-any-return]


def measure(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the time of the first call and the median of later ones, in ms, on the GPU's current stream."""
    import torch

    torch.cuda.synchronize()
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize()
    first_ms = 1e3 * (time.perf_counter() - begun)
    return first_ms, median_high(event_ms(call) for _ in range(_REPEATS))


def scipy_ms(tensors: dict[str, Any]) -> float:
    """Return SciPy's time on this CPU for all frequencies, extrapolated from a few in proportion to their number."""
    from scipy.signal import lombscargle

    t, y, freqs = (tensors[name].double().cpu().numpy() for name in ("t", "y", "freqs"))
    begun = time.perf_counter()
    lombscargle(t, y, freqs[:_OF_SCIPY])
    return 1e3 * (time.perf_counter() - begun) * len(freqs) / _OF_SCIPY


def _tensors(case: Case, device: str) -> dict[str, Any]:
    import torch

    tensors = dict(draw(case, generator(device), None))
    return tensors | {"out": torch.full_like(tensors["freqs"], math.nan)}


def _rung(
    name: str, function: Callable[..., None], arrays: list[Any], out: Any, expected: Any, slow_ms: float | None
) -> Rung:
    out.fill_(math.nan)
    try:
        times = measure(lambda: function(*arrays)) if out.is_cuda else None
        if times is None:
            function(*arrays)
    except NotImplementedError:
        return Rung(name, note="not written yet")
    except Exception as raised:  # the learner's; its own cell and report say more
        return Rung(name, note=f"raises {type(raised).__name__}")
    error = float((out.double() - expected).abs().max()) / arrays[0].size
    if times is None or slow_ms is None:
        return Rung(name, error=error)
    return Rung(name, *times, _registers(function), slow_ms / times[1], error)


def _registers(function: Callable[..., None]) -> int | None:
    """Return the registers of the first kernel that the function's cell keeps in `kernels`; None if there is none."""
    kernels = getattr(function, "__globals__", {}).get("kernels")
    for kept in kernels.values() if isinstance(kernels, dict) else ():
        for kernel in kept if isinstance(kept, tuple | list) else (kept,):
            if isinstance(count := getattr(kernel, "num_regs", None), int):
                return count
    return None


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


@dataclass(frozen=True)
class Published:
    """One row of the published tables: 1,675 samples × 2^20 frequencies on a V100. A missing figure is None."""

    registers: int | None  # in float32, like `jit_ms`
    jit_ms: float | None  # the first call, which compiles
    float32_ms: float
    float64_ms: float


PUBLISHED: dict[str, dict[str, Published]] = {
    "CuPy": {
        "SciPy": Published(None, None, 51_128, 50_806),
        "baseline": Published(30, None, 10.02, 21.2),
        "cached": Published(30, None, 10.03, 21.2),
        "typed": Published(26, None, 10.18, 21.2),
        "fastmath": Published(32, 126, 2.24, 21.2),
        "fatbin": Published(32, 3.8, 2.25, 21.2),
        "launch_bounds": Published(31, None, 2.24, 21.2),
        "sincos": Published(31, None, 2.24, 14.1),
    },
    "Numba": {
        "SciPy": Published(None, None, 51_099, 50_879),
        "baseline": Published(58, 428.9, 16.0, 29.6),
        "cached": Published(58, 431.6, 16.1, 29.4),
        "typed": Published(40, 554.9, 13.3, 29.2),
        "fastmath": Published(35, 442.9, 13.1, 29.1),
        "registers": Published(32, 439.4, 13.1, 29.5),
    },
}
SOURCE = (
    "Published for one V100 by the authors of cuSignal (github.com/awthomp/cusignal-icassp-tutorial): "
    "1,675 samples, 2^20 frequencies. The runs were timed without checking their results."
)  # fmt: skip
_HEAD = ("rung", "registers, V100", "JIT: ms, V100", "kernel: ms, V100", "float64: ms, V100")


@dataclass(frozen=True, repr=False)
class PublishedLadder(Table):
    """The published figures and, if there are any, those recorded for this course with 1,024 samples."""

    library: str
    ours: Recorded

    def _table(self) -> list[tuple[str, ...]]:
        head: tuple[str, ...] = _HEAD
        rows: list[tuple[str, ...]] = []
        if self.ours.rows:
            gpu = str(self.ours.rows[0]["gpu"])
            head = (*_HEAD, f"ms, {gpu}", f"float64: ms, {gpu}")
        for rung, published in PUBLISHED[self.library].items():
            shown = (_number(published.registers, "d"), _number(published.jit_ms, ".4g"))
            times = (
                f"{each:,.4g}" if each < 1000 else f"{each:,.0f}"
                for each in (published.float32_ms, published.float64_ms)
            )
            row: tuple[str, ...] = (rung.replace("_", " "), *shown, *times)
            if self.ours.rows:
                case = "SciPy on the CPU" if rung == "SciPy" else rung
                found = (self.ours.value("median_ms", f"{case}, {dtype}") for dtype in ("float32", "float64"))
                row = (*row, *("" if value is None else _shown(value) for value in found))
            rows.append(row)
        return [head, *rows]

    def _note(self) -> str:
        return f"{SOURCE} {self.ours.origin}"


def published_ladder(library: str) -> PublishedLadder:
    """Return the published rungs of `library`, "CuPy" or "Numba".

    Raises:
        ValueError: there are no published figures for this library.
    """
    if library not in PUBLISHED:
        raise ValueError(f"There are figures for {' and '.join(PUBLISHED)}, none for {library!r}.")
    return PublishedLadder(library, recorded(f"ladder/{library.lower()}", "median_ms"))


_SPECIAL_PER_CLOCK, _MULTIPLY_ADDS_PER_CLOCK = 16, 128  # per SM; the second is Hopper's
PUBLISHED_SAMPLES = 1_675
_BENCHES = ("ladder/numba", "ladder/cupy", "ladder/past")
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # behind a number that a ceiling's line crosses


@dataclass(frozen=True)
class Chip:
    """A GPU's figures from its data sheet."""

    name: str
    multiprocessors: int
    ghz: float  # at most
    multiply_adds_per_clock: int = _MULTIPLY_ADDS_PER_CLOCK  # per multiprocessor

    def special_ms(self, samples: int = SAMPLES) -> float:
        """The minimum time in ms for two special functions per sample and frequency: the last rung's ceiling."""
        return 2 * samples * FREQUENCIES / (_SPECIAL_PER_CLOCK * self.multiprocessors * self.ghz * 1e9) * 1e3

    def multiply_add_ms(self, samples: int = SAMPLES, each: int = 8) -> float:
        """The minimum time in ms for `each` multiply-adds per sample and frequency: a rotation and four sums."""
        per_second = self.multiply_adds_per_clock * self.multiprocessors * self.ghz * 1e9
        return each * samples * FREQUENCIES / per_second * 1e3


H200 = Chip("NVIDIA H200", 132, 1.98)
V100 = Chip("NVIDIA V100", 80, 1.53, 64)


def last_rung_view() -> NvrtcView:
    """Compile the last rung's kernel in float32 with fast math."""
    from grader.worker.harnesses.ladder_kernels import SOURCE

    return nvrtc_view(SOURCE.substitute(T="float", f="f"), "--use_fast_math")


def draw_ladder() -> Picture:
    """Draw the recorded rungs, or else the published ones, with the ceilings of their GPU."""
    bars, chip, samples, origin = _recorded_bars() or _published_bars()
    figure, axes = chart(8.6, 1.5 + 0.33 * len(bars))
    names = [name for name, _ in bars]
    for place, (name, ms) in enumerate(bars):
        axes.plot(ms, place, "o", color=_colour(name), markeredgecolor=DARK, markersize=9)  # no bars: the axis has no 0
        write(axes, ms * 1.5, place, f"{_shown(ms)} ms", 9.5, "left", bbox=_PAPER)
    axes.set_yticks(range(len(bars)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(ms for _, ms in bars) / 3, max(ms for _, ms in bars) * 6)
    axes.grid(axis="y", color=LIGHT, linewidth=6)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"ms for {plural(samples, 'sample')} × 2^20 frequencies, float32")
    special, adds = chip.special_ms(samples), chip.multiply_add_ms(samples)
    axes.axvline(special, color=DARK, linestyle="--", label=f"two special functions each: {special:.2g} ms")
    axes.axvline(adds, color=DARK, linestyle=":", label=f"eight multiply-adds each: {adds:.2g} ms")
    axes.legend(loc="lower right", fontsize=9, title=f"ceilings of one {chip.name}, by its data sheet")
    axes.set_title(origin, fontsize=9.5, loc="left", wrap=True)
    said = ", ".join(f"{name} {_shown(ms)} ms" for name, ms in bars)
    alt = (
        f"The ladder on a logarithmic scale, {plural(samples, 'sample')} and 2^20 frequencies: {said}. Two special "
        f"functions per sample and frequency take at least {special:.2g} ms, eight multiply-adds {adds:.2g} ms. "
        f"{' '.join(origin.split())}"
    )
    return finish(figure, alt, width=820)


def _recorded_bars() -> tuple[list[tuple[str, float]], Chip, int, str] | None:
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


def _published_bars() -> tuple[list[tuple[str, float]], Chip, int, str]:
    bars = [("SciPy", PUBLISHED["Numba"]["SciPy"].float32_ms)]
    for library in ("Numba", "CuPy"):
        rungs = {rung: each for rung, each in PUBLISHED[library].items() if rung != "SciPy"}
        bars += [(f"{library} {rung}".replace("_", " "), each.float32_ms) for rung, each in rungs.items()]
    origin = (
        "Published for one V100, on which both ceilings are the same: its SMs do 64 multiply-adds per clock cycle.\n"
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
