"""Transpose a matrix at the speed of a copy: a tile in shared memory lets both reads and writes run along rows."""

from __future__ import annotations

from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect

_TILES = (64, 32, 16)  # usual numbers of rows and columns
_TOO_SMALL = 16  # this few rows may be right by chance
_SHAPES = ((1, 1), (3, 5), (128, 128), (128, 320), (37, 53), (1, 1000), (1000, 1), (100, 36), (1025, 769))
_SIMULATOR_SHAPES = ((1, 1), (3, 5), (128, 128), (64, 128), (37, 53), (1, 300), (300, 1), (100, 36), (65, 49))
_LIBRARY = (
    "t", "transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "T", "mT", "copy", "contiguous",
    "clone", "adjoint", "einsum", "numpy_T",
)  # fmt: skip


def _case(height: int, width: int) -> Case:
    arrays = (Array("x", (height, width), grows=1), Array("out", (width, height), role="out"))
    return Case(f"{height} × {width}", arrays)


def _copy(x: Any, out: Any) -> None:
    out.view(-1).copy_(x.view(-1))


def _not_transposed(a: Any) -> Any:
    height, width = a["x"].shape
    return a["x"].reshape(width, height) if min(height, width) > 1 else None


def _tiles_of(x: Any, tile: int) -> Any:
    """A view (tiles down, tiles across, tile, tile), or None if the matrix is not a whole number of tiles."""
    height, width = x.shape
    if height % tile or width % tile:
        return None
    return x.reshape(height // tile, tile, width // tile, tile).transpose(1, 2)


def _chosen(a: Any, make: Any) -> Any:
    """The buggy output for the submission's tile size."""
    made = [make(a["x"], tile) for tile in _TILES]
    return _fitting(a, [each for each in made if each is not None])


def _fitting(a: Any, made: list[Any]) -> Any:
    """The output that equals the submission's, with NaN where it never wrote, or the first."""
    fitting = [each for each in made if "got" in a and bool(each.isclose(a["got"], 0, 0, equal_nan=True).all())]
    return next(iter(fitting or made), None)


def _tile_as_it_lies(x: Any, tile: int) -> Any:
    """The tiles change places, but the elements in a tile do not."""
    tiles = _tiles_of(x, tile)
    return None if tiles is None else tiles.permute(1, 2, 0, 3).reshape(x.shape[1], x.shape[0])


def _tiles_in_place(x: Any, tile: int) -> Any:
    """Each tile is transposed in place: its corner in `out` is its corner in `x`."""
    tiles = _tiles_of(x, tile)
    if tiles is None or x.shape[0] != x.shape[1] or x.shape[0] == tile:
        return None
    return tiles.permute(0, 3, 1, 2).reshape(x.shape)


def _one_tile_everywhere(x: Any, tile: int) -> Any:
    tiles = _tiles_of(x, tile)
    if tiles is None or x.shape == (tile, tile):
        return None
    return x[:tile, :tile].t().repeat(x.shape[1] // tile, x.shape[0] // tile)


def _length_of_the_other(a: Any) -> Any:
    """Rows of `out` taken as `width` long, or rows of `x` as `height`. In a tall matrix, threads would collide."""
    x = a["x"]
    height, width = x.shape
    if height >= width:
        return None
    written = x.new_full((width, width), float("nan"))
    written[:, :height] = x.t()
    too_long = written.reshape(-1)[: x.numel()].reshape(width, height)
    return _fitting(a, [too_long, x.as_strided((height, width), (height, 1)).t()])


def _bounds_of_the_other(a: Any) -> Any:
    """No row of `out` from `height` on is right, and writes go past the ends of its rows.

    The start of each row then depends on the last thread that wrote it.
    """
    x = a["x"]
    height, width = x.shape
    if not height < width < 2 * height:
        return None
    got = a.get("got")
    if got is None:
        expected = x.t().clone()
        expected[height:] = float("nan")
        return expected
    right = got == x.t()
    past = width - height
    starts = right[1:height, :past]
    undecided = bool(starts.any()) and not bool(starts.all())
    if right[height:].any() or not right[0].all() or not right[1:height, past:].all():
        return None
    return None if undecided and height < _TOO_SMALL else got


def _on_the_diagonal(a: Any) -> Any:
    """The tiles on the diagonal are right, and the others were never written."""
    import torch

    height, width = a["x"].shape
    row, column = (torch.arange(size, device=a["x"].device) for size in (width, height))
    made = [
        a["x"].t().masked_fill(row[:, None] // tile != column[None, :] // tile, float("nan"))
        for tile in _TILES
        if max(height, width) > tile
    ]
    return _fitting(a, made)


def _part_of_a_tile(a: Any) -> Any:
    """The rows that a thread stores in a tile of `out` all have the values of its first, or its columns."""
    import torch

    x = a["x"]
    made = []
    for tile in _TILES:
        for step in (8, 4, 16):
            if step < tile:
                row, column = (torch.arange(size, device=x.device) for size in (x.shape[1], x.shape[0]))
                made += [x[:, row // tile * tile + row % step].t(), x[column // tile * tile + column % step].t()]
    return _fitting(a, made) if min(x.shape) >= _TOO_SMALL else None


def _sizes_exchanged(a: Any) -> Any:
    """`height` and `width` have each other's value; the grid may then cover only a part of `out`."""
    height, width = a["x"].shape
    if height == width or min(height, width) == 1:
        return None
    made = a["x"].reshape(width, height).t().reshape(width, height)
    got = a.get("got")
    return made if got is None else made.masked_fill(got.isnan(), float("nan"))


def _read_too_early(a: Any) -> Any:
    """Every wrong element is NaN, which the simulator puts into uninitialised shared memory."""
    expected = a["x"].t()
    got = a.get("got")
    if got is None:
        return expected.where(expected >= 0, float("nan"))
    missing = got.isnan()
    return got if bool(missing.any()) and bool((missing | (got == expected)).all()) else None


_TIMED = (_case(8192, 8192),)

TRANSPOSE = Exercise(
    id="transpose",
    title="Transpose a matrix",
    chapter="02_load_inline",
    notebook="02_move_bytes_well",
    entry="transpose",
    parameters=("x", "out"),
    backend="cuda",
    cases=tuple(_case(*shape) for shape in _SHAPES),
    simulator_cases=tuple(_case(*shape) for shape in _SIMULATOR_SHAPES),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(n, n) for n in (256, 512, 1024, 2048, 4096, 8192, 16384)),
    oracle=lambda inputs: inputs["x"].t(),
    budget=Budget(absolute=0.0, relative=0.0),  # nothing is computed
    bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    operations=lambda case: 0,
    correctness_points=3,
    baselines=(Baseline("copy", "a copy of the same size", _copy),),
    gates=(Gate("copy", 0.85, 2, (_TIMED[0].name,)),),
    suspects=(
        Suspect(
            "The matrix was copied, not transposed: element (row, column) of `x` is element (column, row) of `out`.",
            _not_transposed,
        ),
        Suspect(
            "Each tile is in the right place, but its elements are not transposed: a thread that wrote `tile[i][j]` "
            "must read `tile[j][i]`.",
            lambda a: _chosen(a, _tile_as_it_lies),
        ),
        Suspect(
            "Each tile is transposed but stayed in place. In `out`, the block's tile starts at row `blockIdx.x * "
            "TILE` and column `blockIdx.y * TILE`, the reverse of `x`.",
            lambda a: _chosen(a, _tiles_in_place),
        ),
        Suspect(
            "Every tile of `out` is the first tile of `x`: does each block's read position depend on `blockIdx`?",
            lambda a: _chosen(a, _one_tile_everywhere),
        ),
        Suspect(
            "Only the tiles on the diagonal of `out` were written: its rows start at `blockIdx.x * TILE`, and its "
            "columns at `blockIdx.y * TILE`.",
            _on_the_diagonal,
            missing=True,
        ),
        Suspect(
            "Some rows or columns of each tile repeat others. If a thread moves several elements, the index of the "
            "tile changes from one to the next, both where it is written and where it is read.",
            _part_of_a_tile,
        ),
        Suspect(
            "`height` and `width` are exchanged on their way to the kernel: `x` has `height` rows and `width` columns.",
            _sizes_exchanged,
        ),
        Suspect(
            "The row length is that of the other matrix: rows of `x` have `width` elements, rows of `out` have "
            "`height`.",
            _length_of_the_other,
        ),
        Suspect(
            "A bounds check uses the shape of the other matrix: `x` has `height` rows and `width` columns, `out` has "
            "`width` rows and `height` columns.",
            _bounds_of_the_other,
        ),
        Suspect(
            "Part of the tile was read before it was written, or was never written. Does every thread reach a "
            "`__syncthreads()` in between, is the whole tile filled, and does each write check the bounds of `out`?",
            _read_too_early,
        ),
    ),
    rules=Rules(_LIBRARY),
    hints=(
        "Rows of `out` have `height` elements: element (row, column) of `x` goes to `out[column * height + row]`.",
        "Let `threadIdx.x` run along a row of `x` for the read and along a row of `out` for the write.",
        "All threads must have written the tile before any thread reads it: `__syncthreads()`.",
        "Reads past the edge of `x` and writes past the edge of `out` happen in different threads, so you need two "
        "checks. `out` has `width` rows and `height` columns.",
        "The threads of a warp that read down a column of the tile must use 32 different banks: pad each row by one "
        "element.",
        "Give each thread several elements, and load all of them before you store the first.",
    ),
    time_limit_s=180.0,  # torch's default headers take 20 s on a fast machine, 120 s on a busy slow one
    plot_axis="N, rows and columns of the matrix (float32)",
)
