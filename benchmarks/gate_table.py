"""A table of the speed gates that the reference solutions can reach on other GPUs, by a model of bytes and operations.

    python -m benchmarks.gate_table

writes the table into docs/where-to-run.md. The figures of a GPU are those of its data sheet. The model adds two times:
bytes over bandwidth, and operations over the peak of the units that do them. Each has a constant efficiency. The model
is for gates between programs with different limits. Two programs with the same limit have the same ratio on every GPU.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from grader.exercise import Case, Exercise, Gate
from grader.exercises import PACKAGED
from grader.judge.gpu.health import arena_bytes
from grader.judge.score import geometric_mean

PAGE = Path(__file__).parents[1] / "docs/where-to-run.md"
_START, _END = "<!-- gates by GPU: written by `python -m benchmarks.gate_table` -->", "<!-- end of gates by GPU -->"
_CLOSE = 0.05  # of a ratio: the model is not better than this
_FREE = 0.93  # of a GPU's memory, once a desktop, the driver and a context have theirs

# Efficiencies: shares of a data sheet's figure that large kernels reach on Hopper.
_COPY = 0.85  # of the bandwidth
_PRODUCT = 0.65  # cuBLAS, of the tensor cores' float16 peak
_ATTENTION = 0.45  # the reference, of the same
_SDPA = 0.65
_TRITON_PRODUCT = 0.98  # the tuned reference, of cuBLAS
_FMA = 0.6  # a product on the ordinary cores, of the float32 peak


@dataclass(frozen=True)
class Gpu:
    """A GPU by its data sheet: GB/s, dense TFLOPS with accumulation in float32, GB, and the compute capability."""

    name: str
    capability: float
    memory_gb: float
    bandwidth: float
    fp16_tensor: float
    fp32: float
    fp64: float

    @property
    def triton_tensor(self) -> float:
        """TFLOPS of `tl.dot` on float16: Triton uses tensor cores from compute capability 8.0 on."""
        return self.fp16_tensor if self.capability >= 8.0 else self.fp32 * _FMA / _PRODUCT


GPUS = (
    Gpu("T4", 7.5, 16, 320, 65, 8.1, 8.1 / 32),
    Gpu("L4", 8.9, 24, 300, 121, 30.3, 30.3 / 64),
    Gpu("A10", 8.6, 24, 600, 125, 31.2, 31.2 / 64),
    Gpu("A100 80 GB", 8.0, 80, 2039, 312, 19.5, 9.7),
    Gpu("RTX 3060", 8.6, 12, 360, 25.5, 12.7, 12.7 / 64),
    Gpu("RTX 4090", 8.9, 24, 1008, 165, 82.6, 82.6 / 64),
    Gpu("H100 SXM", 9.0, 80, 3350, 989, 66.9, 33.5),
    Gpu("B200", 10.0, 180, 8000, 2250, 80.0, 40.0),
)


def _moved_s(gpu: Gpu, count: float) -> float:
    return count / (_COPY * gpu.bandwidth * 1e9)


def _sizes(case: Case) -> tuple[int, int, int]:
    """M, N and K of a product."""
    (m, k), (_, n) = case.inputs[0].shape, case.inputs[1].shape
    return m, n, k


def _cublas_s(gpu: Gpu, case: Case) -> float:
    return 2 * prod(_sizes(case)) / (_PRODUCT * gpu.fp16_tensor * 1e12)


def _triton_product_s(gpu: Gpu, case: Case) -> float:
    return 2 * prod(_sizes(case)) / (_TRITON_PRODUCT * _PRODUCT * gpu.triton_tensor * 1e12)


def _product(gpu: Gpu, case: Case) -> float:
    return _cublas_s(gpu, case) / _triton_product_s(gpu, case)


def _leaky_product(gpu: Gpu, case: Case) -> float:
    """The baseline reads and writes the float16 product once more."""
    m, n, _ = _sizes(case)
    return (_cublas_s(gpu, case) + _moved_s(gpu, 2 * 2 * m * n)) / _triton_product_s(gpu, case)


def _attention_s(case: Case, peak: float, efficiency: float) -> float:
    heads, length, depth = case.inputs[0].shape
    causal = 0.5 if "causal" in case.name else 1.0
    return causal * 4 * heads * length**2 * depth / (efficiency * peak * 1e12)


def _attention_eager(gpu: Gpu, case: Case) -> float:
    """The scores are written and read by a product, a division, a softmax and a product, and once more by a mask."""
    heads, length, depth = case.inputs[0].shape
    passes = 8 if "causal" in case.name else 6
    products_s = 4 * heads * length**2 * depth / (_PRODUCT * gpu.fp16_tensor * 1e12)
    eager_s = products_s + _moved_s(gpu, passes * 2 * heads * length**2)
    return eager_s / _attention_s(case, gpu.triton_tensor, _ATTENTION)


def _attention_sdpa(gpu: Gpu, case: Case) -> float:
    return _attention_s(case, gpu.fp16_tensor, _SDPA) / _attention_s(case, gpu.triton_tensor, _ATTENTION)


def _ladder_eager(float64: float) -> Callable[[Gpu, Case], float]:
    """Torch moves 68 bytes per sample and frequency; the kernel issues some 96 float32 instructions, and `float64`."""

    def ratio(gpu: Gpu, _: Case) -> float:
        kernel_s = 96 / (gpu.fp32 * 1e12 / 2) + float64 / (gpu.fp64 * 1e12 / 2)
        return _moved_s(gpu, 68) / kernel_s

    return ratio


# By exercise and baseline. All other gates compare programs with the same limit.
MODELS: Mapping[tuple[str, str], Callable[[Gpu, Case], float]] = {
    ("matmul", "cublas"): _product,
    ("matmul_open", "cublas"): _product,
    ("matmul_leaky_relu", "cublas"): _leaky_product,
    ("attention", "eager"): _attention_eager,
    ("attention", "sdpa"): _attention_sdpa,
    ("ls_numba_baseline", "eager"): _ladder_eager(7.0),  # five sums in float64, and the conversions to it
    ("ls_cupy_baseline", "eager"): _ladder_eager(0.0),
}


def outcome(gpu: Gpu, exercise: Exercise, gate: Gate) -> str:
    """ "yes", "close" (within the model's error) or "no", with the ratio; "does not fit" if the memory is too small."""
    cases = [case for case in exercise.timed_cases if case.name in gate.cases]
    if any(not _fits(gpu, case) for case in cases):
        return "does not fit"
    model = MODELS.get((exercise.id, gate.baseline))
    if model is None:
        return "yes"
    ratio = geometric_mean([model(gpu, case) for case in cases])
    margin = ratio / gate.at_least
    said = "yes" if margin >= 1 + _CLOSE else "no" if margin < 1 - _CLOSE else "close"
    return f"{said} ({ratio:.2g}×)"


def _fits(gpu: Gpu, case: Case) -> bool:
    room = arena_bytes(int(_FREE * gpu.memory_gb * 1e9))
    largest = max(
        sum(prod(array.shape) * (2 if "16" in array.dtype else 4) for array in arrays)
        for arrays in (case.inputs, case.outputs)
    )
    return largest <= room


def table() -> str:
    """Return the rows of the gates that a GPU may not reach, and a last row for all others."""
    rows = []
    for exercise in PACKAGED.values():
        for gate in exercise.gates:
            found = [outcome(gpu, exercise, gate) for gpu in GPUS]
            if all(each.startswith("yes") for each in found):
                continue
            label = f"`{exercise.id}`: {gate.at_least:g} × {exercise.baseline(gate.baseline).label}"
            rows.append(f"| {label} | {' | '.join(found)} |")
    head = f"| Gate | {' | '.join(gpu.name for gpu in GPUS)} |\n| --- |{' --- |' * len(GPUS)}"
    return "\n".join([head, *rows, f"| all other gates |{' yes |' * len(GPUS)}"])


def rewrite(page: Path = PAGE) -> None:
    """Write the table between the page's marks."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(_START)}.*?{re.escape(_END)}", flags=re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{_START}\n\n{table()}\n\n{_END}", text), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
    sys.stdout.write(f"{table()}\n")
