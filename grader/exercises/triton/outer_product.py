"""Compute an outer product: the first kernel whose blocks, grid and masks have two axes."""

from __future__ import annotations

from typing import Any

from grader.exercise import Array, Budget, Case, Exercise, Rules, Suspect

_SMALLEST = 16  # rows or columns of a tile


def _case(m: int, n: int, note: str = "", *, padding: int = 0, transposed: bool = False, fill: str = "normal") -> Case:
    """M × N; `out` may have padded rows, or be the transposed view of a matrix."""
    out = Array("out", (m, n), role="out", row_padding=padding, transposed=transposed)
    return Case(f"{m} × {n}{note}", (Array("u", (m,)), Array("v", (n,), grows=None), out), fill)


_PADDED, _PADDING, _TRANSPOSED = (70, 45), 19, (120, 90)
_CASES = (
    _case(1, 1), _case(128, 128), _case(96, 200), _case(333, 70), _case(1, 300),
    _case(*_PADDED, ", rows padded", padding=_PADDING), _case(*_TRANSPOSED, ", out transposed", transposed=True),
    _case(257, 129, ", wide range", fill="heavy"),
)  # fmt: skip


def _outer(a: Any) -> Any:
    return a["u"][:, None] * a["v"][None, :]


def _square(a: Any) -> bool:
    return len(a["u"]) == len(a["v"]) > 1


def _transposed(a: Any) -> Any:
    """Each square tile of a square output transposed; the largest tile is the whole output."""
    if not _square(a):
        return None
    size = len(a["u"])
    made = []
    for tile in (size, 64, 32, 128, 16):
        if size % tile == 0:
            tiles = _outer(a).reshape(size // tile, tile, size // tile, tile)
            made.append(tiles.permute(0, 3, 2, 1).reshape(size, size))
    fitting = [one for one in made if "got" in a and bool(one.isclose(a["got"], 1e-3, 1e-30).all())]
    return next(iter(fitting or made))


def _of_one(name: str) -> Any:
    return lambda a: a[name][:, None] * a[name][None, :] if _square(a) else None


def _without_axes(a: Any) -> Any:
    """Each row of a tile holds the tile's elements of `u` times those of `v`; the others are unknown."""
    import torch

    m, n = a["expected"].shape
    unknown = a.get("got", a["expected"] * float("nan"))
    if min(m, n) == 1:
        return None
    row, column = (torch.arange(length, device=unknown.device) for length in (m, n))
    for tile in (32, 64, 16, 128):
        at = (row // tile * tile)[:, None] + (column % tile)[None, :]
        made = torch.where(at < m, a["u"][at.clamp(max=m - 1)] * a["v"], unknown)
        if "got" not in a or made.isclose(unknown, 1e-5, 1e-30, equal_nan=True).all():
            return made
    return None


def _contiguous(a: Any) -> Any:
    """The output in the case with padded rows, if rows are written as many elements apart as there are columns."""
    m, n = a["expected"].shape
    if (m, n) != _PADDED:
        return None
    memory = a["expected"].new_full((m, n + _PADDING), float("nan"))
    memory.reshape(-1)[: m * n] = a["expected"].reshape(-1)
    return memory[:, :n]


def _columns_adjacent(a: Any) -> Any:
    """The transposed output if columns are written one element apart: all in the first elements of its memory."""
    m, n = a["expected"].shape
    if (m, n) != _TRANSPOSED:
        return None
    memory = a["expected"].new_full((n, m), float("nan"))
    memory.view(-1)[: m + n - 1] = a.get("got", a["expected"]).t().reshape(-1)[: m + n - 1]
    return memory.t()


def _mask_swapped(a: Any) -> Any:
    """The output of a wide matrix without the columns from the number of rows on."""
    made = a["expected"].clone()
    rows, columns = made.shape
    made[:, rows:] = float("nan")
    return made if 1 < rows < columns else None


def _only_first(axis: int) -> Any:
    """The output with only its first rows (axis 0) or columns (axis 1), as many as the submission has written."""

    def output(a: Any) -> Any:
        made = a["expected"].clone()
        written = int((~a["got"].isnan().all(dim=1 - axis)).sum()) if "got" in a else _SMALLEST
        made.transpose(0, axis)[written:] = float("nan")
        return made if written < made.shape[axis] else None

    return output


OUTER_PRODUCT = Exercise(
    id="outer_product",
    title="Compute an outer product",
    chapter="03_triton",
    notebook="04_multiply_matrices",
    entry="outer_product",
    parameters=("u", "v", "out"),
    backend="triton",
    cases=(*_CASES, _case(5000, 3001)),
    simulator_cases=_CASES,
    timed_cases=(),
    plot_cases=(),
    oracle=_outer,
    budget=Budget(absolute=1e-30, relative=1e-6),
    bytes_moved=lambda case: 4 * (case.arrays[0].shape[0] * case.arrays[1].shape[0]),
    operations=lambda case: case.arrays[0].shape[0] * case.arrays[1].shape[0],
    correctness_points=2,
    suspects=(
        Suspect("The result is `u[i] + v[j]`: multiply, do not add.", lambda a: a["u"][:, None] + a["v"][None, :]),
        Suspect(
            "This is the transposed result, `v[i] * u[j]`: `u` belongs to the rows, `u[:, None]`, and `v` to the "
            "columns, `v[None, :]`. Element (i, j) of `out` is at `i * out.stride(0) + j * out.stride(1)`.",
            _transposed,
        ),
        Suspect("The result is `u[i] * u[j]`: is `v` loaded from its own pointer?", _of_one("u")),
        Suspect("The result is `v[i] * v[j]`: is `u` loaded from its own pointer?", _of_one("v")),
        Suspect(
            "Each row of a tile is `u * v`, element by element. Give each block an axis first: "
            "`u[:, None] * v[None, :]` has all pairs.",
            _without_axes,
        ),
        Suspect(
            "Only as many columns of `out` were written as it has rows: is the mask swapped? Compare rows with M, the "
            "number of rows, and columns with N.",
            _mask_swapped,
            missing=True,
        ),
        Suspect(
            "Only the first columns of `out` were written. Does the grid have a second axis, with enough programs, "
            "`triton.cdiv(N, BLOCK_N)`, and do the columns begin at `tl.program_id(1) * BLOCK_N`?",
            _only_first(1),
            missing=True,
        ),
        Suspect(
            "Only the first rows of `out` were written. Does the first axis of the grid have enough programs, "
            "`triton.cdiv(M, BLOCK_M)`, and do the rows begin at `tl.program_id(0) * BLOCK_M`?",
            _only_first(0),
            missing=True,
        ),
        Suspect(
            "The rows of `out` are padded here: step from row to row with `out.stride(0)`, not with the number of "
            "columns.",
            _contiguous,
            spares=tuple(case.name for case in _CASES if "padded" not in case.name and "transposed" not in case.name),
        ),
        Suspect(
            "`out` is a transposed view here: its columns are not adjacent in memory. Element (i, j) is at "
            "`i * out.stride(0) + j * out.stride(1)`.",
            _columns_adjacent,
            missing=True,
            spares=tuple(case.name for case in _CASES if "transposed" not in case.name),
        ),
    ),
    rules=Rules(("outer", "ger", "mul", "einsum", "matmul", "mm", "multiply", "__mul__", "kron")),
    hints=(
        "A program computes one tile of `out`: `BLOCK_M` rows and `BLOCK_N` columns, from `tl.program_id(0)` and "
        "`tl.program_id(1)`.",
        "Load `BLOCK_M` elements of `u` and `BLOCK_N` of `v`, each with a mask; `u[:, None] * v[None, :]` is a tile.",
        "The tile's pointers are `out_ptr + rows[:, None] * stride_m + columns[None, :] * stride_n`.",
        "The store's mask has two axes, too: `(rows[:, None] < M) & (columns[None, :] < N)`.",
        "The grid is a tuple of two numbers: `(triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))`.",
    ),
)
