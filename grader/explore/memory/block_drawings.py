"""Drawings of a GPU's parts, images, and the elements that each program, block or thread works on."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from grader.explore.drawing.displays import (
    BLUE,
    DARK,
    GREY,
    LIGHT,
    ORANGE,
    PALE,
    Picture,
    canvas,
    finish,
    rectangle,
    write,
)
from grader.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ELEMENTS = 32
_MOST_THREADS = 1024
_INSIDE = {"facecolor": PALE, "edgecolor": DARK}
_OUTSIDE = {"facecolor": "white", "edgecolor": GREY, "hatch": "////", "linestyle": "--"}


def draw_blocks(n: int, block_size: int) -> Picture:
    """Draw a vector of `n` elements, divided into one block per program, and the masked tail of the last block.

    Raises:
        ValueError: a size below 1, or too many elements to draw.
    """
    if n < 1 or block_size < 1:
        raise ValueError("n and block_size must be at least 1.")
    programs = ceil(n / block_size)
    covered = programs * block_size
    if covered > _MOST_ELEMENTS:
        raise ValueError(
            f"{covered} is too many elements to draw: choose n and block_size for at most {_MOST_ELEMENTS}."
        )
    extent = max(covered, 9) + 0.3
    figure, axes = canvas(0.56 * (extent + 0.9), 2.1, (-0.9, extent), (3.45, -0.35))
    for i in range(covered):
        inside = i < n
        rectangle(axes, (i, 1), 1, 1, linewidth=1, **(_INSIDE if inside else _OUTSIDE))
        behind = None if inside else {"facecolor": "white", "edgecolor": "none", "pad": 1}
        write(axes, i + 0.5, 1.5, str(i), 11, bbox=behind)
    for program in range(programs):
        left, right = program * block_size, (program + 1) * block_size
        axes.plot([left + 0.1, left + 0.1, right - 0.1, right - 0.1], [0.9, 0.6, 0.6, 0.9], color=BLUE, linewidth=2)
        write(axes, (left + right) / 2, 0.32, f"program {program}", 12)
    axes.text(-0.1, 1.5, "i", ha="right", va="center", fontsize=12, style="italic")
    past = covered - n
    _key(axes, 2.3, f"i < {n}: the mask is True", past=False)
    if past:
        _key(axes, 2.85, f"{past} past the end: the mask is False", past=True)
    tail = f"{_last(past)} of program {programs - 1} {_is_masked(past)}." if past else "No element is masked."
    alt = f"A vector of {plural(n, 'element')} in {plural(programs, 'block')} of {block_size}, one per program. {tail}"
    return finish(figure, alt, width=min(960, int(46 * (extent + 0.9))))


def _key(axes: Axes, y: float, text: str, *, past: bool) -> None:
    rectangle(axes, (0, y), 0.6, 0.4, **(_OUTSIDE if past else _INSIDE))
    write(axes, 0.8, y + 0.2, text, 11, "left")


def draw_grid(height: int, width: int, block: tuple[int, int]) -> Picture:
    """Draw a matrix under a grid of thread blocks of `block = (x, y)` threads, and the threads past its edge.

    Raises:
        ValueError: a size below 1, or too many threads to draw.
    """
    across, down = block
    if min(height, width, across, down) < 1:
        raise ValueError("height, width and both sizes of the block must be at least 1.")
    columns, rows = ceil(width / across), ceil(height / down)
    wide, high = columns * across, rows * down
    if wide * high > _MOST_THREADS or wide > 40:
        raise ValueError(f"{high} × {wide} is too many threads to draw: choose at most {_MOST_THREADS}, 40 across.")
    margin = max(0.4, (8 - wide) / 2)  # room for the label above a narrow grid
    figure, axes = canvas(
        0.52 * (wide + 1.4 + 2 * margin),
        0.52 * (high + 1.8),
        (-1.4 - margin, wide + margin),
        (high + 0.4, -1.4),
        equal=True,
    )
    for row in range(high):
        for column in range(wide):
            inside = row < height and column < width
            shade = PALE if (row // down + column // across) % 2 else LIGHT
            style = {"facecolor": shade, "edgecolor": GREY} if inside else _OUTSIDE
            rectangle(axes, (column, row), 1, 1, linewidth=0.6, **style)
    for y in range(rows):
        for x in range(columns):
            frame = (x * across, y * down)
            rectangle(axes, frame, across, down, fill=False, edgecolor=BLUE, linewidth=2.2)
            _name_block(axes, (x, y), frame, min(across, width - frame[0]), min(down, height - frame[1]))
    rectangle(axes, (0, 0), width, height, fill=False, edgecolor=DARK, linewidth=3.4)
    axes.text(wide / 2, -0.75, "x: columns, blockIdx.x and threadIdx.x →", ha="center", va="center", fontsize=10.5)
    axes.text(-0.8, high / 2, "y: rows ↓", ha="center", va="center", fontsize=10.5, rotation=90)
    idle = wide * high - width * height
    alt = (
        f"A matrix of {plural(height, 'row')} and {plural(width, 'column')}, within a thick line, under a grid of "
        f"{columns} by {rows} = {plural(columns * rows, 'thread block')} of {across} by {down} = "
        f"{plural(across * down, 'thread')} each. Threads past the right or lower edge are hatched: {idle} of "
        f"{plural(wide * high, 'thread')}."
    )
    return finish(figure, alt, width=int(min(760, 40 * (wide + 1.4 + 2 * margin))))


def _name_block(axes: Axes, block: tuple[int, int], corner: tuple[int, int], wide: int, high: int) -> None:
    """Write the block's number in the middle of the block's part of the matrix, where it hides no edge."""
    number = f"({block[0]}, {block[1]})"
    text = f"block\n{number}" if high > 1 else f"block {number}" if wide > 2 else number
    axes.text(
        corner[0] + wide / 2, corner[1] + high / 2, text, ha="center", va="center", fontsize=10 if wide > 1 else 8,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9},
    )  # fmt: skip


_MOST_PROGRAMS, _MOST_ROUNDS = 8, 8
_WIDTH, _ROW = 1.9, 0.8  # of a cell, in drawing units
_FLOAT_BYTES = 4


def partial_bytes(programs: int) -> int:
    """Return the bytes that the partial sums of `programs` programs move: each sum is written once and read once."""
    return 2 * _FLOAT_BYTES * programs


def draw_stages(n: int, block_size: int, programs: int) -> Picture:
    """Draw which program reads which blocks of `n` elements, and how the partial sums are combined.

    Raises:
        ValueError: a size below 1, or too many programs or rounds to draw.
    """
    if min(n, block_size, programs) < 1:
        raise ValueError("n, block_size and programs must be at least 1.")
    blocks = ceil(n / block_size)
    rounds = ceil(blocks / programs)
    if programs > _MOST_PROGRAMS or rounds > _MOST_ROUNDS:
        raise ValueError(
            f"{plural(programs, 'program')} in {plural(rounds, 'round')} is too much to draw: choose at most "
            f"{_MOST_PROGRAMS} programs, and n for at most {_MOST_ROUNDS} rounds."
        )
    left, sums = 2.6, 1.0 + _ROW * rounds + 0.7
    figure, axes = canvas(
        0.72 * (left + _WIDTH * programs + 0.4),
        0.72 * (sums + 2.6),
        (-left, _WIDTH * programs + 0.4),
        (sums + 2.3, -0.3),
    )
    for program in range(programs):
        middle = _WIDTH * (program + 0.5)
        write(axes, middle, 0.5, f"program {program}", 11.5)
        for number in range(program, blocks, programs):
            _stage_block(axes, program, 1.0 + _ROW * (number // programs), number * block_size, n, block_size)
        axes.plot([middle, middle], [1.0 + _ROW * rounds + 0.1, sums - 0.05], color=BLUE, linewidth=2)
        _stage_cell(axes, _WIDTH * program, sums, f"sum {program}", PALE)
        axes.plot([middle, _WIDTH * programs / 2], [sums + _ROW, sums + 1.5], color=ORANGE, linewidth=2, linestyle="--")
    _stage_cell(axes, _WIDTH * (programs - 1) / 2, sums + 1.5, "mean", BLUE)
    for number in range(rounds):
        _label(axes, 1.0 + _ROW * number, f"round {number}")
    _label(axes, sums, "partial sums")
    _label(axes, sums + 1.5, "second stage")
    past = blocks * block_size - n
    alt = (
        f"{plural(n, 'element')} in {plural(blocks, 'block')} of {block_size}, for {plural(programs, 'program')}. In "
        f"each round the programs read neighbouring blocks, one each. Their next blocks are {programs} further on. "
        f"Program 0 reads the blocks {', '.join(str(number) for number in range(0, blocks, programs))}. "
        + (f"{_last(past)} of the last block {_is_masked(past)}. " if past else "")
        + f"Each program writes one sum. The second stage adds the {plural(programs, 'sum')} and divides by {n}."
    )
    return finish(figure, alt, width=min(860, int(52 * (left + _WIDTH * programs))))


def _last(past: int) -> str:
    return "The last element" if past == 1 else f"The last {past} elements"


def _is_masked(past: int) -> str:
    return "is masked" if past == 1 else "are masked"


def _stage_block(axes: Axes, program: int, y: float, first: int, n: int, block_size: int) -> None:
    last, share = min(first + block_size, n) - 1, min(1.0, (n - first) / block_size)
    x = _WIDTH * program
    if share < 1:
        rectangle(axes, (x, y), _WIDTH, _ROW, facecolor="white", edgecolor=GREY, hatch="////", linestyle="--")
    rectangle(axes, (x, y), share * _WIDTH, _ROW, facecolor=LIGHT, edgecolor=DARK, linewidth=1)
    text = f"{first}–{last}" if last > first else str(first)
    behind = {"facecolor": LIGHT, "edgecolor": "none", "pad": 0.8}
    write(axes, x + _WIDTH / 2, y + _ROW / 2, text, 10.5, bbox=behind)


def _stage_cell(axes: Axes, x: float, y: float, text: str, fill: str) -> None:
    rectangle(axes, (x, y), _WIDTH, _ROW, facecolor=fill, edgecolor=DARK, linewidth=1)
    colour = "white" if fill == BLUE else DARK
    write(axes, x + _WIDTH / 2, y + _ROW / 2, text, 11, color=colour)


def _label(axes: Axes, y: float, text: str) -> None:
    write(axes, -0.25, y + _ROW / 2, text, 11, "right")


def draw_padded_rows(rows: int, columns: int, stride: int) -> Picture:
    """Draw a matrix in memory whose rows start `stride` elements apart. Numbers are offsets.

    Raises:
        ValueError: a stride smaller than a row, or too many elements to draw.
    """
    if min(rows, columns) < 1 or stride < columns:
        raise ValueError("rows and columns must be at least 1, and the stride at least as large as a row.")
    if stride > 24 or rows > 12:
        raise ValueError("This is too much to draw: choose at most 12 rows and a stride of at most 24.")
    figure, axes = canvas(0.55 * stride + 1.7, 0.5 * rows + 0.9, (-1.9, stride + 0.3), (rows + 0.9, -0.3))
    for row in range(rows):
        write(axes, -0.2, row + 0.5, f"row {row}", 11, "right")
        for column in range(stride):
            inside = column < columns
            rectangle(axes, (column, row), 1, 1, **(_INSIDE if inside else _OUTSIDE))
            box = None if inside else {"facecolor": "white", "edgecolor": "none", "pad": 1}
            axes.text(
                column + 0.5, row + 0.5, str(row * stride + column), ha="center", va="center", fontsize=10, bbox=box
            )
    write(axes, columns / 2, rows + 0.45, plural(columns, "column"), 11)
    if stride > columns:
        write(axes, (columns + stride) / 2, rows + 0.45, "padding", 11)
    alt = (
        f"A matrix of {plural(rows, 'row')} and {plural(columns, 'column')} in memory. Each row starts "
        f"{plural(stride, 'element')} after the previous one"
        + (f", with {plural(stride - columns, 'element')} of padding between them." if stride > columns else ".")
    )
    return finish(figure, alt, width=int(min(760, 44 * stride + 130)))


def draw_row_in_sram() -> Picture:
    """Draw a row's path between DRAM and the chip in the eager and in the fused softmax."""
    figure, axes = canvas(10, 4.1, (0, 20), (8.6, 0))
    eager = (("max", False), ("subtract", True), ("exp", True), ("sum", False), ("divide", True))
    for left, right, title in ((0.3, 12.2, "eager: five kernels"), (13.6, 19.7, "fused: one kernel")):
        _box(axes, left, 0.9, right, 4.3, LIGHT, "")
        _box(axes, left, 6.3, right, 8.1, PALE, "")
        write(axes, left + 0.2, 0.45, title, 13, "left", weight="bold")
        write(axes, left + 0.25, 1.35, "on the chip: registers and SRAM", 10.5, "left")
        axes.text((left + right) / 2, 7.2, "DRAM: the matrix, millions of bytes", fontsize=11, ha="center", va="center")
    for index, (name, writes_matrix) in enumerate(eager):
        middle = 1.65 + 2.3 * index
        _box(axes, middle - 1, 2.1, middle + 1, 3.8, "white", name)
        _arrow(axes, middle - 0.35, 6.2, 3.9, BLUE, dashed=False)
        if writes_matrix:
            _arrow(axes, middle + 0.35, 3.9, 6.2, ORANGE, dashed=True)
    _box(axes, 13.95, 2.0, 19.35, 3.9, "white", "max → subtract → exp\n→ sum → divide")
    _arrow(axes, 15.2, 6.2, 4.0, BLUE, dashed=False)
    _arrow(axes, 18.1, 4.0, 6.2, ORANGE, dashed=True)
    write(axes, 15.0, 5.2, "reads", 11, "right")
    write(axes, 18.3, 5.2, "writes", 11, "left")
    alt = (
        "Left, the eager softmax: each of five kernels reads the row from DRAM, and three write a whole row back. "
        "Right, the fused softmax: the row is read once, stays on the chip for all five steps, and is written once."
    )
    return finish(figure, alt, width=800)


def _box(axes: Axes, left: float, top: float, right: float, bottom: float, fill: str, text: str) -> None:
    rectangle(axes, (left, top), right - left, bottom - top, facecolor=fill, edgecolor=DARK, linewidth=1.2)
    write(axes, (left + right) / 2, (top + bottom) / 2, text, 11.5)


def _arrow(axes: Axes, x: float, start: float, end: float, colour: str, *, dashed: bool) -> None:
    properties: dict[str, Any] = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.6, "mutation_scale": 16}
    properties |= {"shrinkA": 0, "shrinkB": 0, "linestyle": (0, (4, 2)) if dashed else "solid"}
    axes.annotate("", xy=(x, end), xytext=(x, start), arrowprops=properties)


_TILE = 4  # rows and columns of a tile, and threads along x
_DOWN, _ACROSS = 2, 3  # tiles of x


def draw_transposed_tile() -> Picture:
    """Draw one block's work in an 8 × 12 transpose with 4 × 4 tiles: where four threads read and write."""
    figure, axes = canvas(11, 5.1, (-0.6, 33.6), (14.2, -1.6), equal=True)
    block_x, block_y = 2, 0
    _matrix(axes, (0, 2), _DOWN, _ACROSS, (block_y, block_x), "x, 8 × 12")
    _matrix(axes, (25, 0), _ACROSS, _DOWN, (block_x, block_y), "out, 12 × 8")
    left, top = 16.5, 4
    _grid(axes, left, top, 1, 1)
    write(axes, left + 2, top - 0.8, "tile, in shared memory", 11)
    at_x, at_y = 0 + block_x * _TILE, 2 + block_y * _TILE
    out_x, out_y = 25 + block_y * _TILE, 0 + block_x * _TILE
    for thread in range(_TILE):
        _cell(axes, at_x + thread, at_y, thread, read=True)
        _cell(axes, out_x + thread, out_y, thread, read=False)
        if thread:
            _cell(axes, left + thread, top, thread, read=True)
        _cell(axes, left, top + thread, thread, read=False)
    arrow = {"arrowstyle": "-|>", "color": DARK, "linewidth": 2, "mutation_scale": 16}
    axes.annotate("", xy=(left - 0.2, top + 0.5), xytext=(at_x + _TILE + 0.2, at_y + 0.5), arrowprops=arrow)
    axes.annotate("", xy=(out_x - 0.2, out_y + 0.5), xytext=(left + 1.2, top + 3.5), arrowprops=arrow)
    axes.text(14.2, 2.5, "1", fontsize=13, weight="bold", color=DARK, ha="center")
    axes.text(21.6, 7.2, "2", fontsize=13, weight="bold", color=DARK, ha="center")
    write(axes, 0, 12.9, "1: threads 0 to 3 read along a row of x and write along a row of the tile.", 11, "left")
    said = "2: when the tile is full, they read down a column of the tile and write along a row of out."
    write(axes, 0, 13.8, said, 11, "left")
    alt = (
        "A block of a transpose with tiles of 4 by 4. Threads 0 to 3 read along a row of x, in the tile at tile row 0 "
        "and tile column 2. They write along a row of a tile in shared memory. Then they read down a column of that "
        "tile and write along a row of out, in the tile at tile row 2 and tile column 0."
    )
    return finish(figure, alt, width=820)


def _matrix(axes: Axes, corner: tuple[int, int], down: int, across: int, tile: tuple[int, int], name: str) -> None:
    left, top = corner
    _grid(axes, left, top, down, across)
    write(axes, left + across * _TILE / 2, top - 0.8, name, 11)
    frame = (left + tile[1] * _TILE, top + tile[0] * _TILE)
    rectangle(axes, frame, _TILE, _TILE, fill=False, edgecolor=DARK, linewidth=3.2, zorder=3)


def _grid(axes: Axes, left: float, top: float, down: int, across: int) -> None:
    for row in range(down * _TILE):
        for column in range(across * _TILE):
            rectangle(axes, (left + column, top + row), 1, 1, facecolor=LIGHT, edgecolor=GREY, linewidth=0.4)
    for y in range(down):
        for x in range(across):
            frame = (left + x * _TILE, top + y * _TILE)
            rectangle(axes, frame, _TILE, _TILE, fill=False, edgecolor=DARK, linewidth=1.3)


def _cell(axes: Axes, x: float, y: float, thread: int, *, read: bool) -> None:
    colour, ink = (BLUE, "white") if read else (ORANGE, DARK)
    rectangle(axes, (x, y), 1, 1, facecolor=colour, edgecolor=DARK, linewidth=0.6, hatch=None if read else "///")
    box = None if read else {"facecolor": ORANGE, "edgecolor": "none", "pad": 1}
    write(axes, x + 0.5, y + 0.5, str(thread), 10, color=ink, bbox=box)


_PARTS_OF_AN_SM = (("warps", PALE), ("registers", LIGHT), ("shared memory, L1", LIGHT))
_MOST_PIXELS = 1 << 20


def draw_gpu(sms: int = 3) -> Picture:
    """Draw a GPU's parts: some SMs with their registers and shared memory, the L2 cache, and memory.

    Raises:
        ValueError: fewer than 1 or more than 4 SMs.
    """
    if not 1 <= sms <= 4:
        raise ValueError("sms must be 1 to 4.")
    width = 3.2 * sms + 1.6
    figure, axes = canvas(1.05 * width, 5.4, (-0.2, width + 0.2), (6.6, -0.3))
    for number in range(sms):
        left = 3.2 * number
        rectangle(axes, (left, 0), 2.9, 3.2, facecolor="white", edgecolor=DARK, linewidth=1.4)
        write(axes, left + 1.45, 0.35, f"SM {number}", 12.5)
        for row, (name, colour) in enumerate(_PARTS_OF_AN_SM):
            _part(axes, left + 0.2, 0.7 + 0.8 * row, 2.5, name, colour)
    write(axes, 3.2 * sms + 0.6, 1.6, "…", 18)
    _part(axes, 0, 3.7, width - 0.3, "L2 cache, shared by all SMs", ORANGE)
    _part(axes, 0, 5.0, width - 0.3, "memory (HBM): every tensor", BLUE, "white")
    for y in (3.45, 4.6):
        write(axes, (width - 0.3) / 2, y, "↕", 14)
    write(axes, (width - 0.3) / 2, 6.1, "a block runs on one SM; its threads run in warps of 32", 11.5)
    alt = (
        f"A GPU has many streaming multiprocessors (SMs); {sms} are drawn. Each runs warps of 32 threads and has its "
        "own registers and its own shared memory with the L1 cache. All SMs share the L2 cache. Below it is the GPU's "
        "memory, which holds every tensor. A block runs on one SM."
    )
    return finish(figure, alt, width=640)


def _part(axes: Axes, left: float, top: float, width: float, name: str, colour: str, ink: str = DARK) -> None:
    height = 0.65 if width < 3 else 0.8
    rectangle(axes, (left, top), width, height, facecolor=colour, edgecolor=DARK, linewidth=0.9)
    write(axes, left + width / 2, top + height / 2, name, 11.5, color=ink)


def sample_image(height: int = 120, width: int = 160) -> Any:
    """Return a small colour image: a uint8 tensor (height, width, 3) of a sunset over the sea, on the CPU.

    Raises:
        ValueError: a size below 2, or more than a million pixels.
    """
    import torch

    if min(height, width) < 2 or height * width > _MOST_PIXELS:
        raise ValueError("An image needs at least 2 × 2 pixels and at most a million.")
    down = torch.linspace(0, 1, height)[:, None].expand(height, width)
    across = torch.linspace(0, 1, width)[None, :].expand(height, width)
    sky = torch.stack((0.35 + 0.6 * down, 0.45 + 0.1 * down, 0.85 - 0.7 * down), -1)
    waves = 0.08 * torch.sin(60 * down * down + 9 * across)
    sea = torch.stack((0.10 + waves, 0.30 + waves, 0.45 + waves), -1)
    sun = ((across - 0.6) * width / height) ** 2 + (down - 0.45) ** 2 < 0.03
    image = torch.where((down > 0.62)[..., None], sea, sky)
    image = torch.where((sun & (down <= 0.62))[..., None], torch.tensor([1.0, 0.85, 0.3]), image)
    return (255 * image.clamp(0, 1)).to(torch.uint8)


def draw_images(**images: Any) -> Picture:
    """Draw images next to each other, by name: uint8 tensors (height, width, 3), or (height, width) for grey ones.

    Raises:
        ValueError: no image, another type or shape, or more than a million pixels.
    """
    import torch

    for name, image in images.items():
        grey_or_colour = image.dim() == 2 or (image.dim() == 3 and image.shape[-1] == 3)
        if image.dtype != torch.uint8 or not grey_or_colour or image.numel() > 3 * _MOST_PIXELS:
            raise ValueError(
                f"{name} must be a uint8 tensor (height, width, 3) or (height, width) of a million pixels."
            )
    if not images:
        raise ValueError("Name an image to draw: draw_images(before=image).")
    figure, axes = canvas(4.3 * len(images), 3.7)
    axes.remove()
    for number, (name, image) in enumerate(images.items()):
        one = figure.add_axes((number / len(images) + 0.01, 0.0, 1 / len(images) - 0.02, 0.9))
        one.imshow(image.cpu().numpy(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        one.set_axis_off()
        one.set_title(name, fontsize=12, color=DARK)
    shapes = ", ".join(f"{name}: {' × '.join(map(str, image.shape))}, uint8" for name, image in images.items())
    return finish(figure, f"Images next to each other. {shapes}.", width=320 * len(images))
