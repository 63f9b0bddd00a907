"""Multiply matrices in float32, in CUDA C++: tiles in shared memory, then tiles in registers.

All inputs are normal random numbers, or integers whose products and sums are exact in float32. The allowed error is far
below that of TF32 and float16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect
from grader.exercises.triton.products import LARGE, product, tiles_transposed

_NORMAL = ", normal random numbers"
_PER_STEP = 5e-7  # the allowed error of float32 sums per step along K; TF32's is 20 times as large at K = 4096
_ROUNDING = 1e-6
_TILES = (32, 16, 8, 64, 128)  # usual tile sizes, the most likely first
_CLOSE = 1e-4
_TF32_DIGITS = 10  # explicit binary digits of TF32 and of float16
_LIBRARY = (
    "matmul", "mm", "bmm", "addmm", "addmm_", "baddbmm", "addbmm", "linear", "bilinear", "einsum", "dot", "inner",
    "tensordot", "mv", "addmv", "chain_matmul", "multi_dot", "conv1d", "conv2d", "Linear",
)  # fmt: skip


def _case(m: int, n: int, k: int, note: str = "") -> Case:
    arrays = (Array("a", (m, k)), Array("b", (k, n), grows=None), Array("out", (m, n), role="out"))
    budget = Budget(_PER_STEP * k, _ROUNDING) if note else None  # sums of integers are exact
    return Case(f"{m} × {n} × {k}{note}", arrays, budget=budget)


def _draw(case: Case, source: Any, machine: Any) -> dict[str, Any]:
    """Normal random numbers if the case has its own budget, otherwise integers from -3 to 3, without 0."""
    import torch

    where = {"generator": source, "device": source.device}
    if case.budget is not None:
        return {each.name: torch.randn(each.shape, **where) for each in case.inputs}
    drawn = {}
    for each in case.inputs:
        size = torch.randint(1, 4, each.shape, **where)
        drawn[each.name] = (size * (2 * torch.randint(0, 2, each.shape, **where) - 1)).float()
    return drawn


def _sizes(case: Case) -> tuple[int, int, int]:
    (m, k), (_, n) = case.arrays[0].shape, case.arrays[1].shape
    return m, n, k


def _bytes_moved(case: Case) -> int:
    """Both operands are read once, and the result is written once."""
    m, n, k = _sizes(case)
    return 4 * (m * k + k * n + m * n)


def _operations(case: Case) -> int:
    """A multiplication and an addition per row, column and step."""
    m, n, k = _sizes(case)
    return 2 * m * n * k


def _cublas(a: Any, b: Any, out: Any) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False  # float32 throughout, as learners must
    torch.mm(a, b, out=out)


def _one_of(candidates: Callable[[Any, Any], Iterator[Any]]) -> Callable[[Any], Any]:
    """The bug's output for the tile size that fits the submission's output, or the first that shows the bug."""

    def output(arrays: Any) -> Any:
        a, b = arrays["a"], arrays["b"]
        if a.shape[0] * a.shape[1] * b.shape[1] >= LARGE or min(*a.shape, b.shape[1]) < 2:
            return None
        shown = [made for made in candidates(a, b) if not made.isclose(arrays["expected"], _CLOSE, 1e-5).all()]
        fits = (made for made in shown if "got" in arrays and made.isclose(arrays["got"], _CLOSE, 1e-4).all())
        return next(fits, next(iter(shown), None))

    return output


def _transposed(a: Any, b: Any) -> Iterator[Any]:
    """An operand or the result is transposed, which only square matrices allow."""
    if b.shape[0] == b.shape[1]:
        yield a @ b.t()
    if a.shape[0] == a.shape[1]:
        yield a.t() @ b
    if a.shape == b.shape == b.shape[::-1]:
        yield a.t() @ b.t()
        yield (a @ b).t()


def _row_width_of_another(a: Any, b: Any) -> Iterator[Any]:
    """Rows of one operand are taken for as long as those of another matrix, where that stays within it."""
    (m, k), n = a.shape, b.shape[1]
    for width in (n, m):
        if width < k:
            yield a.contiguous().as_strided((m, k), (width, 1)) @ b
    for width in (k, m):
        if width < n:
            yield a @ b.contiguous().as_strided((k, n), (width, 1))


def _tile_read_across(a: Any, b: Any) -> Iterator[Any]:
    """The indices of one shared tile, or of both, are exchanged between writing and reading."""
    return tiles_transposed(a, b, _TILES)


def _last_step_only(a: Any, b: Any) -> Iterator[Any]:
    k = a.shape[1]
    for tile in _TILES:
        last = (k - 1) // tile * tile
        yield a[:, last:] @ b[last:]


def _step_missing(a: Any, b: Any) -> Iterator[Any]:
    k = a.shape[1]
    for tile in _TILES:
        if k > tile:
            whole = (k - 1) // tile * tile
            yield a[:, :whole] @ b[:whole]
            yield a[:, tile:] @ b[tile:]


def _first_step_repeated(a: Any, b: Any) -> Iterator[Any]:
    k = a.shape[1]
    for tile in _TILES:
        if k % tile == 0:
            yield k // tile * (a[:, :tile] @ b[:tile])


def _one_stays(a: Any, b: Any) -> Iterator[Any]:
    """Each step reads the first tile of one operand."""
    k = a.shape[1]
    for tile in _TILES:
        if k > tile:
            whole, left, right = k // tile * tile, a.new_zeros(a.shape), b.new_zeros(b.shape)
            for at in range(0, k, tile):
                width = min(tile, k - at)
                left[:, at : at + width], right[at : at + width] = a[:, :width], b[:width]
            yield a @ right
            yield left @ b
            if whole < k:  # the edge is that of the first tile
                yield a[:, :whole] @ right[:whole]


def _last_product_only(a: Any, b: Any) -> Iterator[Any]:
    """Each product replaces the last one. Past the end of K they are 0, as with many other bugs."""
    yield a[:, -1:] @ b[-1:]


def _short_tiles(a: Any, b: Any) -> Iterator[Any]:
    """The loop over a tile leaves out its last element or its first."""
    import torch

    at = torch.arange(a.shape[1], device=a.device)
    for tile in _TILES:
        for missing in (tile - 1, 0):
            kept = at % tile != missing
            yield a[:, kept] @ b[kept]


def _sums_continued(a: Any, b: Any) -> Iterator[Any]:
    """A block computes several tiles of `out` in turn and never sets its sums back to 0."""
    whole = a @ b
    for tile in _TILES:
        for axis in (0, 1):
            sums = whole.clone()
            for start in range(tile, whole.shape[axis], tile):
                width = min(tile, whole.shape[axis] - start)
                sums.narrow(axis, start, width).add_(sums.narrow(axis, start - tile, width))
            yield sums


def _stored_past_the_edge(arrays: Any) -> Any:
    """Threads right of the matrix stored their sums, which are 0, into the start of the next row.

    Two threads store each of these elements, in an order that varies: only the wrong elements tell.
    """
    expected = arrays["expected"]
    height, width = expected.shape
    reach = max((-width) % tile for tile in _TILES)
    if height < 2 or not reach or width < 2:
        return None
    got = arrays.get("got")
    if got is None:
        made = expected.clone()
        made[1:, : min(reach, width)] = 0.0
        return made
    wrong = ~got.isclose(expected, _CLOSE, 1e-4)
    inside = not bool(wrong[0].any()) and not bool(wrong[:, reach:].any())
    return got if inside and bool(wrong.any()) and bool((got[wrong] == 0).all()) else None


def _rounded(arrays: Any) -> Any:
    """The product of operands in TF32 or float16, or any output that is right to about three digits."""
    import torch

    a, b, expected = arrays["a"], arrays["b"], arrays["expected"]
    if bool((a == a.round()).all()) or a.shape[0] * a.shape[1] * b.shape[1] >= LARGE:
        return None
    got = arrays.get("got")
    if got is None:
        left, right = (torch.ldexp((m * 2.0**_TF32_DIGITS).round(), torch.tensor(-_TF32_DIGITS)) for m in (a, b))
        return left @ right
    scale = a.norm(dim=1, keepdim=True) * b.norm(dim=0, keepdim=True) / a.shape[1] ** 0.5
    return got if bool(((got - expected).abs() <= 1e-2 * scale).all()) else None


def _never_written(arrays: Any) -> Any:
    """The output, if all that is written is right, and some elements were never written."""
    expected = arrays["expected"]
    got = arrays.get("got")
    if got is None:
        made = expected.clone()
        made[:, made.shape[1] // 2 :] = float("nan")
        return made
    missing = got.isnan()
    return got if not missing.all() and bool((missing | got.isclose(expected, _CLOSE, 1e-4)).all()) else None


_SIMULATOR_CASES = (
    _case(1, 1, 1), _case(3, 5, 7), _case(128, 128, 128), _case(64, 192, 64), _case(192, 64, 32), _case(96, 80, 100),
    _case(77, 131, 64), _case(33, 65, 31), _case(70, 90, 300, _NORMAL),
)  # fmt: skip
_TIMED = (_case(4096, 4096, 4096, _NORMAL),)

MATMUL_TILED = Exercise(
    id="matmul_tiled",
    title="Multiply matrices with tiles",
    chapter="02_load_inline",
    notebook="05_multiply_with_tiles",
    entry="matmul_tiled",
    parameters=("a", "b", "out"),
    backend="cuda",
    cases=(*_SIMULATOR_CASES, _case(1000, 1001, 999), _case(1536, 2048, 1024, _NORMAL)),
    simulator_cases=_SIMULATOR_CASES,
    timed_cases=_TIMED,
    plot_cases=tuple(_case(n, n, n, _NORMAL) for n in (512, 1024, 1536, 2048, 3072, 4096)),
    draw=_draw,
    oracle=lambda inputs: product(inputs["a"], inputs["b"]),
    budget=Budget(absolute=1e-6, relative=_ROUNDING),
    bytes_moved=_bytes_moved,
    operations=_operations,
    correctness_points=4,
    baselines=(Baseline("cublas", "cuBLAS in float32", _cublas),),
    # On an H200 the naive kernel reached 0.106 of cuBLAS, a tile with one element per thread 0.170, the reference 0.87.
    gates=(Gate("cublas", 0.6, 3, (_TIMED[0].name,)), Gate("cublas", 0.13, 1, (_TIMED[0].name,))),
    suspects=(
        Suspect(
            "Parts of `out` were never written: does the grid cover the matrix, rounded up along x for the columns "
            "and along y for the rows? If a thread computes several elements, a block covers more than it has threads.",
            _never_written,
            missing=True,
        ),
        Suspect(
            "This is the product with an operand or the result transposed. Element (row, k) of `a` is `a[row * K + "
            "k]`, element (k, column) of `b` is `b[k * N + column]`, and a row of `out` has N elements.",
            _one_of(_transposed),
        ),
        Suspect(
            "The rows of an operand have another width: element (row, k) of `a` is `a[row * K + k]`, and element (k, "
            "column) of `b` is `b[k * N + column]`.",
            _one_of(_row_width_of_another),
        ),
        Suspect(
            "The indices of a shared tile are exchanged: what a thread writes to `tile[i][j]` must be read as "
            "`tile[i][j]`. The tile of `b` has rows along k: multiply `tile_a[row][k]` by `tile_b[k][column]`.",
            _one_of(_tile_read_across),
        ),
        Suspect(
            "Only the last step along K is in the result: set the sums to 0 once, before the loop over the tiles, "
            "and add to them in each step.",
            _one_of(_last_step_only),
        ),
        Suspect(
            "The first or the last step along K is missing: there are (K + STEP - 1) / STEP steps, and the first "
            "starts at 0.",
            _one_of(_step_missing),
        ),
        Suspect(
            "Every step along K multiplied the same two tiles: in step s, the tile of `a` starts at column s * STEP, "
            "and the tile of `b` at row s * STEP.",
            _one_of(_first_step_repeated),
        ),
        Suspect(
            "Each step along K read the same tile of one operand. In step s, the tile of `a` starts at column s * "
            "STEP, and the tile of `b` at row s * STEP.",
            _one_of(_one_stays),
        ),
        Suspect(
            "Only the last product is in the result: add each one with `+=`, which `=` replaces.",
            _one_of(_last_product_only),
        ),
        Suspect(
            "One element of each tile along K is missing: the loop over a tile runs from 0 to STEP - 1, both included.",
            _one_of(_short_tiles),
        ),
        Suspect(
            "The sums of one tile of `out` were carried into the next: a block that computes several tiles must set "
            "its accumulators to 0 for each.",
            _one_of(_sums_continued),
        ),
        Suspect(
            "Threads past the right edge stored their sums into the next row of `out`: check both the row and the "
            "column before you store.",
            _stored_past_the_edge,
        ),
        Suspect(
            "The result is right to about three digits only. TF32 and float16 keep 10 binary digits of each input, "
            "float32 keeps 23: this exercise asks for float32 throughout.",
            _rounded,
        ),
    ),
    rules=Rules(_LIBRARY),
    hints=(
        "Start with one thread per element of `out` and a loop over K, without shared memory.",
        "With a tile, the loop over K has two levels: for each tile, all threads load, wait, multiply, and wait again.",
        "Past an edge of `a` or `b`, put a 0 into the tile: it adds nothing. No thread returns early, because each "
        "must reach every `__syncthreads()`.",
        "With 8 × 8 sums per thread, each value that a thread reads from shared memory is used 8 times.",
        "The accumulators `float sums[8][8]` stay in registers only if every index is known when compiling: use loops "
        "with constant bounds and `#pragma unroll`.",
    ),
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
    limited_by="arithmetic",
    work=lambda case: _operations(case),
    work_unit="operations",
    launches=4,  # a float32 product takes many times the time of the float16 product that is the ceiling
    over_ceiling=10.0,
    plot_axis="N, rows and columns of each matrix (float32)",
)
