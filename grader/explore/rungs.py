"""The rungs of a reduction: small kernels, each for its reason, that run on this machine with or without a GPU."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["RUNGS", "Rung", "RungResults", "build", "compare_rungs", "launch", "run_rung", "show_rung"]

THREADS = 256
_TREE = """
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }"""


@dataclass(frozen=True)
class Rung:
    """One kernel: why it is faster than the one before, its text, and the lines of C++ that launch it.

    The lines know `x`, `out` (1 element, 0 before), `scratch`, `n`, and `blocks`, the size of a fixed grid.
    """

    reason: str
    kernel: str
    launches: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join([self.kernel.strip(), "", *self.launches])

    def _repr_html_(self) -> str:
        style = "font-family:var(--jp-code-font-family, monospace); font-size:13px; line-height:1.4; overflow-x:auto"
        return f'<pre style="{style}; margin:4px 0 10px 1em">{escape(repr(self))}</pre>'


RUNGS = {
    "atomics": Rung(
        "One atomic addition for each element: right, and all of them queue at one address.",
        """
__global__ void atomics_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i] / n);
}""",
        ("atomics_kernel<<<(n + 255) / 256, 256>>>(x, out, n);",),
    ),
    "tree": Rung(
        "A block adds its 256 elements in shared memory: one atomic for 256 elements.",
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
        "The same without barriers between its steps, to see what they are for.",
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
        "A warp adds its 32 elements in registers: no shared memory, no barrier; one atomic for 32 elements.",
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
        "A thread adds many elements before it meets another thread; a second launch adds the sums of the blocks.",
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
            "stride_kernel<<<blocks, 256>>>(x, scratch, n, 1);  // a sum for each block",
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
    """All rungs, compiled once: by nvcc where torch sees a GPU, else by the C++ compiler, to run on the CPU."""
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
    from grader.worker.cuda_on_cpu import COMPILER_FLAGS, INCLUDE, translate

    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "rungs.cpp"), Path(folder, "rungs.so")
        source.write_text('#include "cuda_on_cpu.h"\n' + translate(_source()), encoding="utf-8")
        command = ["c++", "-shared", "-fPIC", *COMPILER_FLAGS, f"-I{INCLUDE}", "-o", str(library), str(source)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        ctypes.CDLL(str(library))  # it stays loaded when its file is gone
        return str(library)


def launch(name: str, x: torch.Tensor, out: torch.Tensor, scratch: torch.Tensor, blocks: int) -> None:
    """Launch a rung on float32 tensors: `x` (n,), `out` (1,) which is 0, and `scratch` of at least `blocks` elements.

    Raises:
        RuntimeError: the launch was refused.
    """
    error = getattr(build(), _function(name))(x.data_ptr(), out.data_ptr(), scratch.data_ptr(), x.numel(), blocks)
    if error:
        raise RuntimeError(f"The launch of the rung {name!r} was refused: CUDA's error {error}.")


def run_rung(name: str, x: torch.Tensor, blocks: int = 64) -> float:
    """The mean of the float32 vector `x`, by the rung `name`."""
    import torch

    scratch = torch.empty(blocks, device=x.device)
    out = torch.zeros(1, device=x.device)
    launch(name, x, out, scratch, blocks)
    return out.item()


def show_rung(name: str) -> Rung:
    """The kernel and its launch, as text.

    Raises:
        KeyError: there is no such rung; the message lists those that there are.
    """
    if name not in RUNGS:
        raise KeyError(f"There is no rung {name!r}; there are: {', '.join(RUNGS)}.")
    return RUNGS[name]


@dataclass(frozen=True)
class RungResults:
    """What each rung gave for one vector, and how far that is from the float64 mean, relative to it."""

    exact: float
    means: dict[str, float]

    def error(self, name: str) -> float:
        return abs(self.means[name] - self.exact) / abs(self.exact)

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = [(name, f"{mean:.6f}", f"{self.error(name):.1e}") for name, mean in self.means.items()]
        return [*rows, ("float64", f"{self.exact:.6f}", "")]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<14}{mean:>16}{error:>12}" for name, mean, error in self._rows())

    def _repr_html_(self) -> str:
        head = "<tr><th style='text-align:left'>rung</th><th>mean</th><th>relative error</th></tr>"
        cells: list[Any] = [
            f"<tr><td style='text-align:left'>{escape(name)}</td><td>{mean}</td><td>{error}</td></tr>"
            for name, mean, error in self._rows()
        ]
        return f"<table>{head}{''.join(cells)}</table>"


def compare_rungs(x: torch.Tensor) -> RungResults:
    """Every rung that is right, on one float32 vector."""
    means = {name: run_rung(name, x) for name in RUNGS if name != "tree without barriers"}
    return RungResults(x.double().mean().item(), means)
