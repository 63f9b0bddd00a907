"""Reductions: drawings of a tree and of warp shuffles, and CUDA kernels, each faster than the previous one."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

from grader.explore.drawing.displays import (
    BLUE,
    DARK,
    GREY,
    LIGHT,
    ORANGE,
    Picture,
    Table,
    canvas,
    code_html,
    finish,
    rectangle,
    write,
)
from grader.explore.drawing.recorded_results import Recorded, recorded
from grader.explore.profiling.call_timing import event_ms
from grader.words import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from matplotlib.axes import Axes

Addressing = Literal["interleaved", "sequential"]
_MOST_DRAWN = 32
_WARP = 32


def _steps(threads: int, addressing: Addressing) -> list[list[tuple[int, int, int]]]:
    """The additions of each step: (thread, its own element, the element that it adds)."""
    distances = [1 << k for k in range(threads.bit_length() - 1)]
    if addressing == "sequential":
        return [[(t, t, t + d) for t in range(d)] for d in reversed(distances)]
    return [[(t, t, t + d) for t in range(0, threads, 2 * d)] for d in distances]


def active_warps(threads: int, addressing: Addressing) -> list[int]:
    """For each step of a tree over `threads` elements, count the warps in which any thread adds.

    Raises:
        ValueError: `threads` is not a power of two.
    """
    _must_be_power(threads)
    return [len({thread // _WARP for thread, _, _ in step}) for step in _steps(threads, addressing)]


def _must_be_power(threads: int) -> None:
    if threads < 2 or threads & (threads - 1):
        raise ValueError(f"The number of threads must be a power of two, at least 2; it is {threads}.")


def draw_reduction_tree(threads: int = 16, addressing: Addressing = "sequential") -> Picture:
    """Draw a reduction tree in shared memory, one row per step; elements written in a step are dark.

    Raises:
        ValueError: not a power of two, or too many threads to draw.
    """
    _must_be_power(threads)
    if threads > _MOST_DRAWN:
        raise ValueError(f"{threads} is too many threads to draw: choose at most {_MOST_DRAWN}.")
    steps = _steps(threads, addressing)
    figure, axes = canvas(
        0.5 * threads + 2.2, 0.95 * (len(steps) + 1), (-3.6, threads + 0.4), (1.9 * len(steps) + 1.3, -0.5)
    )
    values = [1] * threads
    _row(axes, 0, values, set(), "1 each")
    for number, step in enumerate(steps, start=1):
        y = 1.9 * number
        for _, own, other in step:
            values[own] += values[other]
            for source in (own, other):
                colour = BLUE if source == own else ORANGE
                axes.plot([source + 0.5, own + 0.5], [y - 0.9, y], linestyle="-" if source == own else "--",
                          color=colour, linewidth=1.6)  # fmt: skip
        _row(axes, y, values, {own for _, own, _ in step}, f"step {number}: {plural(len(step), 'thread')}")
    first = steps[0]
    alt = (
        f"A tree over {threads} ones in {plural(len(steps), 'step')}, with {addressing} addressing. In the first step "
        f"thread {first[0][0]} adds element {first[0][2]} to element {first[0][1]}, and thread {first[-1][0]} adds "
        f"element {first[-1][2]} to element {first[-1][1]}. The number of threads that add halves with each step: "
        f"{', '.join(str(len(step)) for step in steps)}. After the last step element 0 holds {values[0]}."
    )
    return finish(figure, alt, width=min(900, 48 * threads + 130))


def _row(axes: Axes, y: float, values: Sequence[int], written: set[int], label: str) -> None:
    for place, value in enumerate(values):
        dark = place in written
        rectangle(axes, (place, y), 1, 1, facecolor=BLUE if dark else LIGHT, edgecolor=DARK, linewidth=0.8)
        colour = "white" if dark else DARK if not written and y == 0 else GREY
        write(axes, place + 0.5, y + 0.5, str(value), 11, color=colour)
    write(axes, -0.25, y + 0.5, label, 11, "right")


def draw_shuffles(lanes: int = 8) -> Picture:
    """Draw the steps of `__shfl_down_sync` over `lanes` lanes: the value each receives, and the sum in lane 0.

    Raises:
        ValueError: not a power of two, or more lanes than a warp has.
    """
    _must_be_power(lanes)
    if lanes > _WARP:
        raise ValueError(f"A warp has {_WARP} lanes; {lanes} are too many.")
    offsets = [step[0][2] for step in _steps(lanes, "sequential")]
    figure, axes = canvas(
        0.62 * lanes + 2.6, 0.95 * (len(offsets) + 1), (-3.4, lanes + 0.4), (1.9 * len(offsets) + 1.3, -0.5)
    )
    values = [1] * lanes
    _row(axes, 0, values, set(), "a 1 in each lane")
    for number, offset in enumerate(offsets, start=1):
        y = 1.9 * number
        received = [values[lane + offset] if lane + offset < lanes else values[lane] for lane in range(lanes)]
        values = [own + more for own, more in zip(values, received, strict=True)]
        for lane in range(lanes - offset):
            needed = lane < offset
            axes.plot([lane + offset + 0.5, lane + 0.5], [y - 0.9, y], linestyle="--" if needed else ":",
                      color=ORANGE if needed else GREY, linewidth=1.8 if needed else 0.8)  # fmt: skip
        _row(axes, y, values, set(range(offset)), f"offset {offset}")
    alt = (
        f"{plural(len(offsets), 'shuffle step')} over {lanes} lanes, with offsets {', '.join(map(str, offsets))}. In "
        "each step every lane adds the value of the lane that is this offset higher; if there is no such lane, it gets "
        f"its own value back. Only the dark lanes are needed. At the end lane 0 holds {values[0]}, the sum of all."
    )
    return finish(figure, alt, width=min(820, 56 * lanes + 200))


THREADS = 256
_TREE = """
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }"""


@dataclass(frozen=True)
class Rung:
    """One kernel: why it is faster than the previous one, its source, and the C++ lines that launch it.

    The lines can use `x`, `out` (1 element, initially 0), `scratch`, `n`, and `blocks`, the size of a fixed grid.
    """

    reason: str
    kernel: str
    launches: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([self.kernel.strip(), "", *self.launches])

    def _repr_html_(self) -> str:
        return code_html(repr(self), "font-size:13px; margin:4px 0 10px 1em")


RUNGS = {
    "atomics": Rung(
        "One atomic addition per element: correct, but all of them queue at one address.",
        """
__global__ void atomics_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i] / n);
}""",
        ("atomics_kernel<<<(n + 255) / 256, 256>>>(x, out, n);",),
    ),
    "tree": Rung(
        "A block adds its 256 elements in shared memory: one atomic per 256 elements.",
        f"""
__global__ void tree_kernel(const float* x, float* out, int n) {{
    __shared__ float tree[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tree[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();{_TREE}
    if (threadIdx.x == 0) atomicAdd(out, tree[0] / n);
}}""",
        ("tree_kernel<<<(n + 255) / 256, 256>>>(x, out, n);",),
    ),
    "tree without barriers": Rung(
        "The same without barriers between the steps, to show why they are needed.",
        """
__global__ void hasty_kernel(const float* x, float* out, int n) {
    __shared__ float tree[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tree[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2)
        if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
    if (threadIdx.x == 0) atomicAdd(out, tree[0] / n);
}""",
        ("hasty_kernel<<<(n + 255) / 256, 256>>>(x, out, n);",),
    ),
    "shuffles": Rung(
        "A warp adds its 32 elements in registers: no shared memory, no barrier; one atomic per 32 elements.",
        """
__global__ void shuffles_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? x[i] : 0.0f;
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum / n);
}""",
        ("shuffles_kernel<<<(n + 255) / 256, 256>>>(x, out, n);",),
    ),
    "grid-stride": Rung(
        "Each thread adds many elements before the block combines them; a second launch adds the sums of the blocks.",
        f"""
__global__ void stride_kernel(const float* x, float* sums, int n, float divisor) {{
    __shared__ float tree[256];
    int threads = gridDim.x * blockDim.x;  // of the whole grid
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) sum += x[i];
    tree[threadIdx.x] = sum;
    __syncthreads();{_TREE}
    if (threadIdx.x == 0) sums[blockIdx.x] = tree[0] / divisor;
}}""",
        (
            "stride_kernel<<<blocks, 256>>>(x, scratch, n, 1);  // one sum per block",
            "stride_kernel<<<1, 256>>>(scratch, out, blocks, n);  // their sum, divided by n",
        ),
    ),
}


def _function(name: str) -> str:
    return "run_" + name.replace(" ", "_").replace("-", "_")


def _source() -> str:
    parameters = "const float* x, float* out, float* scratch, int n, int blocks"
    parts = []
    for name, rung in RUNGS.items():
        body = "\n    ".join([*rung.launches, "return (int)cudaGetLastError();"])
        parts.append(f'{rung.kernel}\n\nextern "C" int {_function(name)}({parameters}) {{\n    {body}\n}}')
    return "\n\n".join(parts)


@cache
def build() -> ctypes.CDLL:
    """Compile all rungs, once: with nvcc if torch sees a GPU, otherwise with the C++ compiler for the CPU."""
    import torch

    if torch.cuda.is_available():
        from torch.utils.cpp_extension import load_inline

        path = load_inline(  # type: ignore[no-untyped-call]
            "rungs", "", _source(), no_implicit_headers=True, is_python_module=False
        )
    else:
        path = _built_for_cpu()
    library = ctypes.CDLL(path)
    for name in RUNGS:
        getattr(library, _function(name)).argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 2
    return library


def _built_for_cpu() -> str:
    from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate
    from grader.worker.simulator.header_build import compiler

    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "rungs.cpp"), Path(folder, "rungs.so")
        source.write_text('#include "cuda_on_cpu.h"\n' + translate(_source()), encoding="utf-8")
        flags = [*COMPILER_FLAGS, "-fno-sanitize=all"]  # accesses are logged in submissions only
        command = [*compiler(), "-shared", "-fPIC", *flags, f"-I{INCLUDE}", "-o", str(library), str(source)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        ctypes.CDLL(str(library))  # it stays loaded after its file is deleted
        return str(library)


def launch(name: str, x: torch.Tensor, out: torch.Tensor, scratch: torch.Tensor, blocks: int) -> None:
    """Launch a rung on float32 tensors: `x` (n,), `out` (1,) filled with 0, `scratch` of at least `blocks` elements.

    Raises:
        RuntimeError: the launch failed.
    """
    error = getattr(build(), _function(name))(x.data_ptr(), out.data_ptr(), scratch.data_ptr(), x.numel(), blocks)
    if error:
        raise RuntimeError(f"The launch of the rung {name!r} failed with CUDA error {error}.")


def run_rung(name: str, x: torch.Tensor, blocks: int = 64) -> float:
    """Return the mean of the float32 vector `x`, computed by the rung `name`."""
    import torch

    scratch = torch.empty(blocks, device=x.device)
    out = torch.zeros(1, device=x.device)
    launch(name, x, out, scratch, blocks)
    return out.item()


def show_rung(name: str) -> Rung:
    """Return the kernel and its launch, as text.

    Raises:
        KeyError: there is no such rung; the message lists all of them.
    """
    if name not in RUNGS:
        raise KeyError(f"There is no rung {name!r}; choose from {', '.join(RUNGS)}.")
    return RUNGS[name]


@dataclass(frozen=True, repr=False)
class RungResults(Table):
    """Each rung's mean of one vector, and its relative error against the float64 mean."""

    exact: float
    means: dict[str, float]

    def error(self, name: str) -> float:
        return abs(self.means[name] - self.exact) / abs(self.exact)

    _left = 1

    def _table(self) -> list[tuple[str, str, str]]:
        rows = [(name, f"{mean:.6f}", f"{self.error(name):.1e}") for name, mean in self.means.items()]
        return [("rung", "mean", "relative error"), *rows, ("float64", f"{self.exact:.6f}", "")]


def compare_rungs(x: torch.Tensor) -> RungResults:
    """Run every correct rung on one float32 vector."""
    means = {name: run_rung(name, x) for name in RUNGS if name != "tree without barriers"}
    return RungResults(x.double().mean().item(), means)


ELEMENTS = 1 << 26
TIMED = ("atomics", "shuffles", "tree", "grid-stride")  # the slowest first
_REPEATS, _WARM_UP = 20, 3


@dataclass(frozen=True, repr=False)
class RungSpeeds(Table):
    """Read bandwidth of the rungs and of `torch.mean`, in GB/s."""

    how: Literal["measured", "recorded"]
    gbps: dict[str, float]
    table: Recorded | None = None

    def value(self, name: str) -> float | None:
        """GB/s, or None if neither measured nor recorded."""
        return self.gbps.get(name)

    def ratio(self, fast: str, slow: str) -> float | None:
        """How many times as fast `fast` is as `slow`; None if one is unknown."""
        both = fast in self.gbps and slow in self.gbps
        return self.gbps[fast] / self.gbps[slow] if both else None

    _left = 1

    def _table(self) -> Sequence[Sequence[str]]:
        if self.table is not None:
            return self.table._table()
        return [("rung", "GB/s, measured"), *((name, _gbps(gbps)) for name, gbps in self.gbps.items())]

    def _note(self) -> str:
        return "" if self.table is None else self.table.origin


def _gbps(gbps: float) -> str:
    """At least two digits: readers compute ratios from these."""
    return f"{gbps:.2g}" if gbps < 10 else f"{gbps:,.0f}"


def measure_rungs(n: int = ELEMENTS) -> RungSpeeds:
    """Time the rungs and `torch.mean` on `n` float32 elements: the median of 20 launches, timed by CUDA events.

    Without a GPU nothing runs, and the values recorded by the bench `reductions` are returned.
    """
    import torch

    if not torch.cuda.is_available():
        found = recorded("reductions", "bandwidth_gbps", "share_of_read")
        gbps = {row["case"]: row["value"] for row in found.rows if row["metric"] == "bandwidth_gbps"}
        return RungSpeeds("recorded", gbps, found)

    x, out = torch.randn(n, device="cuda"), torch.zeros(1, device="cuda")
    blocks = 8 * torch.cuda.get_device_properties(0).multi_processor_count
    scratch = torch.empty(blocks, device="cuda")
    calls: dict[str, Callable[[], object]] = {name: partial(launch, name, x, out, scratch, blocks) for name in TIMED}
    calls["torch.mean"] = partial(torch.mean, x)
    return RungSpeeds("measured", {name: 4 * n / _ms(call) / 1e6 for name, call in calls.items()})


def _ms(call: Callable[[], object]) -> float:
    return median([event_ms(call) for _ in range(_WARM_UP + _REPEATS)][_WARM_UP:])
