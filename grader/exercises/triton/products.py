"""What the bugs of matrix products write, and the sentences that name them; an activation may come behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from grader.exercise import Array, Budget, Case, Suspect

# What the three exercises on matrix products share: cases, how they are drawn, the oracle, what bugs would write.
#
# Most inputs are small whole numbers: every sum of them is exact in float16, so that what a bug wrote is known to the
# last digit. In one case sums pass the largest float16 on their way. Normal random numbers ask for rounding once.

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


# What the bugs of matrix products write, and the sentences that name them; an activation may come behind it.

_TILES = (64, 32, 128, 16, 256)  # along one axis, as learners choose them: the likeliest first
_SMALLEST = min(_TILES)
_LARGEST_FLOAT16 = 65_504
_CLOSE = 1e-3

Activation = Callable[[Any], Any]
Candidates = Callable[[Any, Any], Iterator[Any]]


def suspects(activation: Activation = lambda product: product) -> tuple[Suspect, ...]:
    """The bugs that all of these exercises can have."""

    def one_of(candidates: Candidates) -> Callable[[Any], Any]:
        return lambda arrays: _fitting(arrays, candidates, activation)

    return (
        Suspect(
            "The accumulator is a float16: here the sums pass 65,504, the largest number that it holds, on their way "
            "to results that are small. Add up in float32, `tl.zeros(…, dtype=tl.float32)`, and round at the store.",
            _float16_sums,
            spares=WHOLE,
        ),
        Suspect(
            "Parts of `out` were never written, all of them at its lower or right edge, where a tile is not whole: is "
            "the number of tiles rounded up, `tl.cdiv(M, BLOCK_M)` and `tl.cdiv(N, BLOCK_N)`, in the grid and in the "
            "kernel?",
            lambda arrays: _never_written(arrays, edges=True),
            missing=True,
        ),
        Suspect(
            "Whole tiles of `out` were never written: the order of the programs drops them. Each tile must be some "
            "program's. Row after row it is `pid // tiles_n` and `pid % tiles_n`. In grouped order the last group may "
            "have fewer rows than the others: `min(tiles_m - first, GROUP)` takes the place of `GROUP`.",
            lambda arrays: _never_written(arrays, edges=False),
            missing=True,
        ),
        Suspect(
            "This is the product with a transposed operand: element (m, k) of `a` lies at `m * a.stride(0) + k * "
            "a.stride(1)`, element (k, n) of `b` at `k * b.stride(0) + n * b.stride(1)`, and (m, n) of `out` likewise.",
            one_of(_transposed),
        ),
        Suspect(
            "One tile along K is missing, at the start or at the end: an off-by-one in the loop over K. It takes "
            "`tl.cdiv(K, BLOCK_K)` steps, and begins with step 0.",
            one_of(_a_step_missing),
        ),
        Suspect(
            "What is left over at the end of K, less than a whole tile, was not added: `K // BLOCK_K` steps are too "
            "few. `tl.cdiv(K, BLOCK_K)` rounds up, and the last step is masked.",
            one_of(_tail_dropped),
        ),
        Suspect(
            "This is the product of a single step along K: do the products add up, `accumulator = tl.dot(a, b, "
            "accumulator)`? And does the mask let later steps through: `K - k` where k counts elements, `K - k * "
            "BLOCK_K` where it counts tiles?",
            one_of(_single_step),
        ),
        Suspect(
            "Every step along K multiplied the same two tiles: both pointers must move on by `BLOCK_K`, times the "
            "stride along K, before the next step.",
            one_of(_first_step_repeated),
        ),
        Suspect(
            "Every step along K multiplied the same tile of one of the two: only one pointer moves on. Both must, by "
            "`BLOCK_K` times their own stride along K, before the next step.",
            one_of(_one_stays),
        ),
        Suspect(
            "From step to step along K a pointer moved on by one element, not by a tile: add `BLOCK_K` times the "
            "stride along K.",
            one_of(_moved_by_one),
        ),
        Suspect(
            "NaN comes in where K is no multiple of a tile: past the end of K lies memory that belongs to nobody. Mask "
            "the last step in both loads, with `other=0.0`. Masking one of them is not enough: 0 times NaN is NaN. "
            "What is left is `K` less the elements that are done, not the tiles.",
            _tail_not_masked,
        ),
        Suspect(
            "Rows are padded here, and NaN comes from between them: step from row to row with the stride, "
            "`a.stride(0)`, `b.stride(0)` and `out.stride(0)`, not with the number of columns.",
            _stepped_by_columns,
            spares=("1 × 1 × 1", "128 × 128 × 128", "96 × 80 × 100", "77 × 131 × 64", "704 × 96 × 32"),
        ),
        Suspect(
            "Here `a` and `b` are transposed views: from one column to the next it is `stride(1)` elements, not 1, and "
            "from row to row `stride(0)`, not the number of columns.",
            one_of(_row_major),
        ),
    )


def _sizes_of(a: Any) -> tuple[int, int, int]:
    return a["a"].shape[0], a["b"].shape[1], a["a"].shape[1]


def _fitting(arrays: Any, candidates: Candidates, activation: Activation) -> Any:
    """Of what the bug may have written the one that is nearest to what was written; without it, the first."""
    m, n, k = _sizes_of(arrays)
    if m * n * k >= LARGE or min(m, n, k) < 2:
        return None
    made = []
    for one in candidates(arrays["a"], arrays["b"]):
        output = activation(one)
        if output.isclose(arrays["expected"], _CLOSE, 1e-7).all():
            continue  # with this tile the bug does not show
        if "got" not in arrays or output.isclose(arrays["got"], _CLOSE, 1e-7).all():
            return output
        made.append(output)
    return next(iter(made), None)


def _transposed(a: Any, b: Any) -> Iterator[Any]:
    if b.shape[0] == b.shape[1]:
        yield a @ b.t()
    if a.shape[0] == a.shape[1]:
        yield a.t() @ b
    if a.shape == b.shape == b.shape[::-1]:
        yield a.t() @ b.t()
    if a.shape[0] == b.shape[1]:
        yield (a @ b).t()


def _a_step_missing(a: Any, b: Any) -> Iterator[Any]:
    k = a.shape[1]
    for tile in _TILES:
        if k > tile and k % tile == 0:
            yield a[:, : k - tile] @ b[: k - tile]
        if k > tile:
            yield a[:, tile:] @ b[tile:]
    yield a[:, 1:] @ b[1:]
    yield a[:, :-1] @ b[:-1]


def _tail_dropped(a: Any, b: Any) -> Iterator[Any]:
    k = a.shape[1]
    for tile in _TILES:
        if whole := k // tile * tile:
            yield a[:, :whole] @ b[:whole]


def _single_step(a: Any, b: Any) -> Iterator[Any]:
    k = a.shape[1]
    for tile in _TILES:
        last = (k - 1) // tile * tile
        yield a[:, last:] @ b[last:]
        yield a[:, :tile] @ b[:tile]


def _first_step_repeated(a: Any, b: Any) -> Iterator[Any]:
    k = a.shape[1]
    for tile in _TILES:
        if k % tile == 0:
            yield k // tile * (a[:, :tile] @ b[:tile])


def _one_stays(a: Any, b: Any) -> Iterator[Any]:
    """Each step of the one by the first of the other, added up."""
    k = a.shape[1]
    for tile in _TILES:
        if k > tile and k % tile == 0:
            yield sum(a[:, at : at + tile] for at in range(0, k, tile)) @ b[:tile]
            yield a[:, :tile] @ sum(b[at : at + tile] for at in range(0, k, tile))


def _moved_by_one(a: Any, b: Any) -> Iterator[Any]:
    """Both pointers, or one of them; the tiles overlap."""
    k = a.shape[1]
    for tile in _TILES:
        if k > tile and k % tile == 0:
            starts = range(k // tile)
            yield sum(a[:, at : at + tile] @ b[at : at + tile] for at in starts)
            yield sum(a[:, at : at + tile] @ b[at * tile : (at + 1) * tile] for at in starts)
            yield sum(a[:, at * tile : (at + 1) * tile] @ b[at : at + tile] for at in starts)


def _row_major(a: Any, b: Any) -> Iterator[Any]:
    """Views read as if their rows lay one after the other, or as if the elements of a row were neighbours."""
    if (a.shape[0], b.shape[1], a.shape[1]) != TRANSPOSED:
        return
    ways = [(one.t().reshape(one.shape), _neighbours(one), one) for one in (a, b)]
    for left in ways[0]:
        for right in ways[1]:
            yield left @ right


def _neighbours(view: Any) -> Any:
    """Row r begins at r * stride(0), which is r, and its elements follow each other."""
    return view.t().reshape(-1).as_strided(view.shape, (1, 1))


def _float16_sums(arrays: Any) -> Any:
    """Infinity, or what infinities give, where float16 does not hold the sums of the first half of K."""
    a, b = arrays["a"], arrays["b"]
    half = a.shape[1] // 2
    if not half or a.shape[0] * a.shape[1] * b.shape[1] >= LARGE:
        return None
    if float((a[:, :half] @ b[:half]).abs().min()) <= _LARGEST_FLOAT16:
        return None
    if "got" not in arrays:
        return arrays["expected"] * float("inf")
    return None if arrays["got"].isfinite().any() else arrays["got"]


def _tail_not_masked(arrays: Any) -> Any:
    """NaN everywhere; or in the last row alone, where behind a row of `a` lies the next one, and `b` is masked."""
    m, _, k = _sizes_of(arrays)
    expected = arrays["expected"]
    if k % _SMALLEST == 0 or m < _SMALLEST:
        return None
    last = expected.clone()
    last[m - 1] = float("nan")
    all_of_it = expected * float("nan")
    return last if "got" in arrays and arrays["got"][:-1].isfinite().all() else all_of_it


def _stepped_by_columns(arrays: Any) -> Any:
    """NaN stands between the rows, and nowhere else that this case would have a learner read."""
    if _sizes_of(arrays) != PADDED:
        return None
    if "got" not in arrays:
        return arrays["expected"] * float("nan")
    return arrays["got"] if arrays["got"].isnan().any() else None


def _never_written(arrays: Any, *, edges: bool) -> Any:
    """What is right with NaN where nothing was written, where that is whole tiles: those at the edges, or others."""
    m, n, _ = _sizes_of(arrays)
    expected = arrays["expected"]
    if "got" not in arrays:
        made = expected.clone()
        if edges:
            made[m // 64 * 64 :] = made[:, n // 64 * 64 :] = float("nan")
        elif m > 64:
            made[64:128] = float("nan")
        return made if made.isnan().any() and not made.isnan().all() else None
    got = arrays["got"]
    missing = got.isnan()
    if not missing.any() or not _of_tiles(missing):
        return None
    if not (missing | got.isclose(expected, _CLOSE, 1e-7)).all():
        return None
    return got if _at_the_edges(missing, m, n) == edges else None


def _of_tiles(missing: Any) -> bool:
    """Whether it is some of the smallest tiles, each of them whole, and not all."""
    rows = missing[::_SMALLEST].repeat_interleave(_SMALLEST, 0)[: missing.shape[0]]
    both = rows[:, ::_SMALLEST].repeat_interleave(_SMALLEST, 1)[:, : missing.shape[1]]
    return bool((both == missing).all()) and not bool(missing.all())


def _at_the_edges(missing: Any, m: int, n: int) -> bool:
    """Whether it is what is left over by whole tiles of some size, below and on the right."""
    import torch

    for rows in (m // tile * tile for tile in _TILES):
        for columns in (n // tile * tile for tile in _TILES):
            if rows == m and columns == n:
                continue
            left = torch.zeros_like(missing)
            left[rows:] = True
            left[:, columns:] = True
            if bool((left == missing).all()):
                return True
    return False
