"""What the three exercises on matrix products share: cases, how they are drawn, the oracle, what bugs would write.

Most inputs are small whole numbers: every sum of them is exact in float16, so that what a bug wrote is known to the
last digit. In one case sums pass the largest float16 on their way. Normal random numbers ask for rounding once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.exercise import Array, Budget, Case

__all__ = [
    "BUDGET",
    "CASES",
    "LARGE",
    "LIBRARY",
    "PADDED",
    "PLOT_CASES",
    "SIMULATOR_CASES",
    "TIMED",
    "TRANSPOSED",
    "WHOLE",
    "bytes_moved",
    "draw",
    "operations",
    "oracle",
    "product",
]

LARGE = 1 << 31  # multiplications: from there on a GPU that is slow at float64 would take seconds
PADDED, TRANSPOSED = (160, 192, 128), (96, 112, 80)  # M, N and K of the cases in which strides matter
_BEYOND = ", sums that pass 65,504 on the way"
_NORMAL = ", normal random numbers"
_ROUNDING = 1.1e-3  # a float16 is rounded by up to 2**-11 of its value; twice, where an activation is not fused
_OF_A_STEP = 2.5e-6  # what float32 sums may be off, for each of the K steps; float16 sums are off by far more
BUDGET = Budget(absolute=1e-6, relative=_ROUNDING)
LIBRARY = (
    "matmul", "mm", "bmm", "addmm", "addmm_", "baddbmm", "addbmm", "linear", "bilinear", "einsum", "dot", "inner",
    "tensordot", "mv", "addmv", "chain_matmul", "multi_dot", "_scaled_mm", "conv1d", "conv2d", "leaky_relu",
    "LeakyReLU", "Linear",
)  # fmt: skip


def _case(
    m: int, n: int, k: int, note: str = "", *, padding: int = 0, transposed: bool = False, normal: bool = False
) -> Case:
    """M × N × K; with `padding` the rows of each matrix lie apart, each by another number of elements."""
    arrays = (
        Array("a", (m, k), "float16", row_padding=padding, transposed=transposed),
        Array("b", (k, n), "float16", row_padding=2 * padding, transposed=transposed, grows=None),
        Array("out", (m, n), "float16", role="out", row_padding=3 * padding),
    )
    budget = Budget(_OF_A_STEP * k, _ROUNDING) if normal else None  # sums of whole numbers are exact
    return Case(f"{m} × {n} × {k}{note}", arrays, budget=budget)


def _square(n: int) -> Case:
    return _case(n, n, n, normal=True)


def draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """The inputs of a case: normal random numbers where it has a budget of its own, else whole ones."""
    import torch

    if case.budget is not None:
        return {each.name: _normal(each.shape, source) for each in case.inputs}
    beyond = case.name.endswith(_BEYOND)
    low, high = (24, 41) if beyond else (-3, 4)
    where = {"generator": source, "device": source.device}
    drawn = {each.name: torch.randint(low, high, each.shape, **where).half() for each in case.inputs}
    if beyond:  # the second half of K takes away what the first one has added
        drawn["a"][:, drawn["a"].shape[1] // 2 :] *= -1
    return drawn


def _normal(shape: tuple[int, ...], source: Any) -> Any:
    import torch

    return torch.randn(shape, generator=source, device=source.device).half()


def product(a: Any, b: Any) -> Any:
    """`a @ b` in float64; where that is large, on a GPU, of what float32 gives without TF32."""
    import torch

    if not a.is_cuda or a.shape[0] * a.shape[1] * b.shape[1] < LARGE:
        return a @ b
    backend: Any = torch.backends.cuda.matmul
    before = backend.fp32_precision
    backend.fp32_precision = "ieee"  # whoever calls may have asked for less, by the older setting or by this one
    try:
        return (a.float() @ b.float()).double()
    finally:
        backend.fp32_precision = before


def oracle(activation: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """What is expected of a product, `activation` behind it."""

    def expected(inputs: Any) -> Any:
        found = product(inputs["a"], inputs["b"])
        return found if activation is None else activation(found)

    return expected


def _sizes(case: Case) -> tuple[int, int, int]:
    (m, k), (_, n) = case.arrays[0].shape, case.arrays[1].shape
    return m, n, k


def bytes_moved(case: Case) -> int:
    """Both operands once in, the result once out."""
    m, n, k = _sizes(case)
    return 2 * (m * k + k * n + m * n)


def operations(case: Case) -> int:
    """A multiplication and an addition for each triple of row, column and step."""
    m, n, k = _sizes(case)
    return 2 * m * n * k


SIMULATOR_CASES = (
    _case(1, 1, 1),
    _case(128, 128, 128),
    _case(96, 80, 100),
    _case(77, 131, 64),
    _case(704, 96, 32),
    _case(*PADDED, ", rows padded", padding=8),
    _case(*TRANSPOSED, ", a and b transposed", transposed=True),
    _case(64, 64, 512, _BEYOND),
    _case(128, 128, 256, _NORMAL, normal=True),
)
CASES = (*SIMULATOR_CASES, _case(1000, 1001, 999), _case(2048, 1536, 1024, _NORMAL, normal=True))
WHOLE = tuple(case.name for case in CASES if case.budget is None and not case.name.endswith(_BEYOND))
TIMED = (_square(4096), _square(8192))
PLOT_CASES = tuple(_square(n) for n in (1024, 1536, 2048, 3072, 4096, 6144, 8192))
