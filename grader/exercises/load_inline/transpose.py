"""Transpose a matrix at a copy's speed: through a tile in shared memory, reads and writes both run along rows."""

from __future__ import annotations

from typing import Any

from grader.exercise import Array, Baseline, Budget, Case, Exercise, Gate, Rules, Suspect

_TILES = (64, 32, 16)  # rows and columns, as learners choose them
_TOO_SMALL = 16  # so few rows may be right by chance


def _case(height: int, width: int) -> Case:
    arrays = (Array("x", (height, width), grows=1), Array("out", (width, height), role="out"))
    return Case(f"{height} × {width}", arrays)


def _oracle(inputs: Any) -> Any:
    return inputs["x"].t()


def _copy(x: Any, out: Any) -> None:
    out.view(-1).copy_(x.view(-1))


def _not_transposed(a: Any) -> Any:
    height, width = a["x"].shape
    return a["x"].reshape(width, height) if min(height, width) > 1 else None


def _tiles_of(x: Any, tile: int) -> Any:
    """(tiles down, tiles across, tile, tile), or None where the tiles do not come out even."""
    height, width = x.shape
    if height % tile or width % tile:
        return None
    return x.reshape(height // tile, tile, width // tile, tile).transpose(1, 2)


def _chosen(a: Any, make: Any) -> Any:
    """The buggy output for the tile that the submission has."""
    made = [make(a["x"], tile) for tile in _TILES]
    return _fitting(a, [each for each in made if each is not None])


def _fitting(a: Any, made: list[Any]) -> Any:
    """The one of these outputs that the submission wrote (NaN is what it never wrote), else the first."""
    fitting = [each for each in made if "got" in a and bool(each.isclose(a["got"], 0, 0, equal_nan=True).all())]
    return next(iter(fitting or made), None)


def _tile_as_it_lies(x: Any, tile: int) -> Any:
    """Tiles change places, and no element changes its place in its tile."""
    tiles = _tiles_of(x, tile)
    return None if tiles is None else tiles.permute(1, 2, 0, 3).reshape(x.shape[1], x.shape[0])


def _tiles_in_place(x: Any, tile: int) -> Any:
    """Each tile is transposed where it is: its corner in `out` is that in `x`."""
    tiles = _tiles_of(x, tile)
    if tiles is None or x.shape[0] != x.shape[1] or x.shape[0] == tile:
        return None
    return tiles.permute(0, 3, 1, 2).reshape(x.shape)


def _one_tile_everywhere(x: Any, tile: int) -> Any:
    """Every block reads the tile at the top left."""
    tiles = _tiles_of(x, tile)
    if tiles is None or x.shape == (tile, tile):
        return None
    return x[:tile, :tile].t().repeat(x.shape[1] // tile, x.shape[0] // tile)


def _length_of_the_other(a: Any) -> Any:
    """Rows of `out` are taken to be `width` long, or those of `x` `height`; in a tall matrix, threads would collide."""
    x = a["x"]
    height, width = x.shape
    if height >= width:
        return None
    written = x.new_full((width, width), float("nan"))
    written[:, :height] = x.t()
    too_long = written.reshape(-1)[: x.numel()].reshape(width, height)
    return _fitting(a, [too_long, x.as_strided((height, width), (height, 1)).t()])


def _bounds_of_the_other(a: Any) -> Any:
    """Of `out`, no row from `height` on is right. Writing with the bounds of `x` also goes past the ends of its rows.

    What lies at the start of a row then depends on which thread was last.
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


def _read_too_early(a: Any) -> Any:
    """All that is not right is NaN, which is what the simulator has in shared memory before anybody writes there."""
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
    cases=(
        _case(1, 1),
        _case(3, 5),
        _case(128, 128),
        _case(128, 320),
        _case(37, 53),
        _case(1, 1000),
        _case(1000, 1),
        _case(100, 36),
        _case(1025, 769),
    ),
    simulator_cases=(
        _case(1, 1),
        _case(3, 5),
        _case(128, 128),
        _case(64, 128),
        _case(37, 53),
        _case(1, 300),
        _case(300, 1),
        _case(100, 36),
        _case(65, 49),
    ),
    timed_cases=_TIMED,
    plot_cases=tuple(_case(n, n) for n in (256, 512, 1024, 2048, 4096, 8192, 16384)),
    oracle=_oracle,
    budget=Budget(absolute=0.0, relative=0.0),  # nothing is computed
    bytes_moved=lambda case: 2 * 4 * case.arrays[0].shape[0] * case.arrays[0].shape[1],
    operations=lambda case: 0,
    correctness_points=3,
    baselines=(Baseline("copy", "a copy of as many bytes", _copy),),
    gates=(Gate("copy", 0.85, 2, (_TIMED[0].name,)),),
    suspects=(
        Suspect(
            "The matrix was copied, not transposed: element (row, column) of `x` is element (column, row) of `out`.",
            _not_transposed,
        ),
        Suspect(
            "Each tile is in its right place, but inside of it nothing was transposed: a thread that wrote "
            "`tile[i][j]` must read `tile[j][i]`.",
            lambda a: _chosen(a, _tile_as_it_lies),
        ),
        Suspect(
            "Each tile was transposed, but stayed where it was: in `out` the block's tile begins at row "
            "`blockIdx.x * TILE` and column `blockIdx.y * TILE`, the other way round than in `x`.",
            lambda a: _chosen(a, _tiles_in_place),
        ),
        Suspect(
            "Every tile of `out` is the first one of `x`: does where a block reads depend on `blockIdx`?",
            lambda a: _chosen(a, _one_tile_everywhere),
        ),
        Suspect(
            "The length of a row is that of the other matrix: rows of `x` have `width` elements, rows of `out` have "
            "`height`.",
            _length_of_the_other,
        ),
        Suspect(
            "A bounds check is that of the other matrix: `x` has `height` rows and `width` columns, `out` has `width` "
            "rows and `height` columns.",
            _bounds_of_the_other,
        ),
        Suspect(
            "Some of the tile was read before it was written, or was never written: does every thread pass "
            "`__syncthreads()` in between, is all of the tile filled, and is each write checked against the bounds of "
            "`out`?",
            _read_too_early,
        ),
    ),
    rules=Rules(
        (
            "t",
            "transpose",
            "permute",
            "swapaxes",
            "swapdims",
            "movedim",
            "moveaxis",
            "T",
            "mT",
            "copy",
            "contiguous",
            "clone",
            "adjoint",
            "einsum",
            "numpy_T",
        )
    ),
    hints=(
        "`out` has rows of `height` elements: element (row, column) of `x` belongs to `out[column * height + row]`.",
        "Let `threadIdx.x` run along a row of `x` while you read and along a row of `out` while you write.",
        "Between writing the tile and reading it, every thread must have written: `__syncthreads()`.",
        "The thread that reads past the edge of `x` is another than the one that writes past the edge of `out`: two "
        "checks. `out` has `width` rows and `height` columns.",
        "Threads of a warp that read down a column of the tile must meet 32 banks: give each row one element more.",
        "Give each thread several elements, and load all of them before it stores the first.",
    ),
    time_limit_s=90.0,  # torch's default headers take 20 s on a fast machine, and a learner may well use them
    plot_axis="N, rows and columns of the matrix (float32)",
)
