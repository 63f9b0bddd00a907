"""Layouts and shared-memory buffers of a compiled Triton kernel, read from TritonGPU IR and drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

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
from grader.explore.triton_compiler.compiled_stages import Compiled
from grader.words import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LAYOUT = re.compile(
    r"^(?P<name>#\w+) = #ttg\.blocked<\{sizePerThread = \[(?P<size>[\d, ]+)\], "
    r"threadsPerWarp = \[(?P<threads>[\d, ]+)\], "
    r"warpsPerCTA = \[(?P<warps>[\d, ]+)\], order = \[(?P<order>[\d, ]+)\]",
    re.MULTILINE,
)
_LOAD = re.compile(
    r"%(?P<value>\w+) = (?:tt\.load|ttg\.async_copy_global_to_local) .*: "
    r"tensor<(?P<shape>[\dx]+)x!tt\.ptr<\w+>, (?P<name>#\w+)>"
)


@dataclass(frozen=True)
class Blocked:
    """A blocked layout, one number per dimension; `order` begins with the fastest-varying dimension."""

    size: tuple[int, ...]
    threads: tuple[int, ...]
    warps: tuple[int, ...]
    order: tuple[int, ...]

    def holder(self, index: tuple[int, ...]) -> tuple[int, int]:
        """Return the warp and the lane that hold an element. The layout repeats over a larger block."""
        lanes = [i // size % threads for i, size, threads in zip(index, self.size, self.threads, strict=True)]
        across = [size * threads for size, threads in zip(self.size, self.threads, strict=True)]
        warps = [i // each % count for i, each, count in zip(index, across, self.warps, strict=True)]
        return self._number(warps, self.warps), self._number(lanes, self.threads)

    def _number(self, place: list[int], counts: tuple[int, ...]) -> int:
        number, step = 0, 1
        for dimension in self.order:
            number += place[dimension] * step
            step *= counts[dimension]
        return number

    @property
    def tile(self) -> tuple[int, ...]:
        """The shape that all threads together cover once."""
        return tuple(a * b * c for a, b, c in zip(self.size, self.threads, self.warps, strict=True))

    def words(self) -> str:
        """Return the layout as TritonGPU IR writes it."""
        return (
            f"sizePerThread = {list(self.size)}, threadsPerWarp = {list(self.threads)}, "
            f"warpsPerCTA = {list(self.warps)}, order = {list(self.order)}"
        )


@dataclass(frozen=True)
class Held:
    """A loaded block, and how its elements are distributed over the threads."""

    name: str
    shape: tuple[int, ...]
    layout: Blocked


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def loaded_layouts(compiled: Compiled) -> list[Held]:
    """Return the blocks that the kernel loads from global memory, in program order, each layout and shape once."""
    text = compiled.texts["ttgir"]
    layouts = {
        found["name"]: Blocked(*(_numbers(found[part]) for part in ("size", "threads", "warps", "order")))
        for found in _LAYOUT.finditer(text)
    }
    held: dict[tuple[tuple[int, ...], Blocked], Held] = {}
    for found in _LOAD.finditer(text):
        if found["name"] in layouts:
            shape = tuple(int(n) for n in found["shape"].split("x"))
            name = re.sub(r"_\d+$", "", found["value"])
            held.setdefault((shape, layouts[found["name"]]), Held(name, shape, layouts[found["name"]]))
    return list(held.values())


_ITEM_BYTES = {
    "f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "f8E4M3FN": 1, "f8E5M2": 1,
}  # fmt: skip
_ALLOCATED = re.compile(
    r"%(?P<value>\w+) = ttg\.local_alloc \{allocation\.offset = (?P<offset>\d+) : i32[^}]*\} : \(\) -> "
    r"!ttg\.memdesc<(?P<shape>[\dx]+)x(?P<type>[a-z]\w*), "
)
_CONVERTED = re.compile(
    r"ttg\.convert_layout .*\{allocation\.offset = (?P<offset>\d+) : i32[^}]*\} : "
    r"tensor<(?P<shape>[\dx]+)x(?P<type>[a-z]\w*), "
)
_COPIED = re.compile(r"ttg\.async_copy_global_to_local %\w+, %(?P<slot>\w+)")
_SLOT = re.compile(r"%(?P<slot>\w+) = ttg\.memdesc_index %(?P<buffer>\w+)\[")


@dataclass(frozen=True)
class Buffer:
    """One buffer in shared memory: `slots` slots of `slot_bytes`, starting at `offset`."""

    name: str
    offset: int
    slot_bytes: int
    slots: int

    @property
    def end(self) -> int:
        return self.offset + self.slots * self.slot_bytes


@dataclass(frozen=True)
class Pipeline:
    """The buffers of a loop, the copies in flight when it begins, and the space used after it."""

    buffers: tuple[Buffer, ...]
    ahead: int
    after: tuple[Buffer, ...]
    total_bytes: int

    @property
    def slots(self) -> int:
        return max((buffer.slots for buffer in self.buffers), default=0)

    def state(self, slot: int, step: int, steps: int) -> str:
        """Return the state of a slot in step `step` of `steps`: "free", "arriving" or "read".

        The data of step s is read in step s, and its copy starts `ahead` steps earlier. The first copies start before
        the loop, in steps below 0.
        """
        for own in range(slot, steps, self.slots):
            if step == own:
                return "read"
            if own - self.ahead <= step < own:
                return "arriving"
        return "free"


def _bytes(shape: list[int], kind: str) -> int:
    return prod(shape) * _ITEM_BYTES.get(kind, 1)


def pipeline(compiled: Compiled) -> Pipeline:
    """Return the buffers of the kernel's pipelined loop, if it has one."""
    text = compiled.allocated or compiled.texts["ttgir"]
    before, _, inside = text.partition("scf.for")
    buffers = {}
    for found in _ALLOCATED.finditer(text):
        slots, *shape = (int(n) for n in found["shape"].split("x"))
        if found["type"] in _ITEM_BYTES and len(shape) >= 2:
            size = _bytes(shape, found["type"])
            name = re.sub(r"_\d+$", "", found["value"])
            buffers[found["value"]] = Buffer(name, int(found["offset"]), size, slots)
    indexed = {found["slot"]: found["buffer"] for found in _SLOT.finditer(text)}
    copied = [indexed.get(found["slot"], "") for found in _COPIED.finditer(before)]
    fed = [name for name in buffers if name in copied]
    after = tuple(
        Buffer("the result, converted to another layout", int(found["offset"]),
               _bytes([int(n) for n in found["shape"].split("x")], found["type"]), 1)
        for found in _CONVERTED.finditer(inside)
    )  # fmt: skip
    ahead = copied.count(fed[0]) if fed else 0
    return Pipeline(tuple(buffers[name] for name in fed), ahead, after, compiled.shared_bytes)


_STAGES = (
    ("Python", "your kernel, as a tree", "blocks, masks, `tl.load`"),
    ("Triton IR", "the same, as operations", "types; helpers are inlined"),
    ("TritonGPU IR", "blocks become threads", "coalescing, shared memory, pipelining"),
    ("LLVM IR", "one thread, in scalars", "fixed offsets in shared memory"),
    ("PTX", "instructions for NVIDIA GPUs", "load widths; unlimited registers"),
    ("SASS", "instructions for one GPU", "real registers, order, spills"),
)
_STEPS = 6
_MOST_CELLS = 40


def draw_compiler_stages() -> Picture:
    """Draw the stages of Triton's compiler: what each one is, and what first appears in it."""
    from matplotlib.patches import FancyBboxPatch

    figure, axes = canvas(8.8, 5.3, (0, 10), (len(_STAGES) + 0.05, -0.4))
    axes.text(0.2, -0.15, "stage", fontsize=11, weight="bold", color=DARK)
    axes.text(2.45, -0.15, "what it is", fontsize=11, weight="bold", color=DARK)
    axes.text(5.95, -0.15, "what first appears there", fontsize=11, weight="bold", color=DARK)
    for row, (name, what, decided) in enumerate(_STAGES):
        gpu = row >= 2
        box = FancyBboxPatch(
            (0.15, row + 0.1), 1.9, 0.62, boxstyle="round,pad=0.02", facecolor=PALE if gpu else LIGHT, edgecolor=DARK
        )
        axes.add_patch(box)
        write(axes, 1.1, row + 0.41, name, 12)
        write(axes, 2.45, row + 0.41, what, 11, "left")
        write(axes, 5.95, row + 0.41, decided.replace("`", ""), 11, "left")
        if row + 1 < len(_STAGES):
            axes.annotate(
                "", (1.1, row + 1.08), (1.1, row + 0.76), arrowprops={"arrowstyle": "->", "color": DARK, "lw": 1.4}
            )
    said = "; ".join(f"{name}: {what}, with {decided.replace('`', '')}" for name, what, decided in _STAGES)
    alt = f"Six stages and what first appears in each. {said}. From TritonGPU IR on, threads are known."
    return finish(figure, alt, width=780)


def _only(compiled: Compiled, block: int) -> Held:
    held = loaded_layouts(compiled)
    if not 0 <= block < len(held):
        raise ValueError(
            f"{compiled.name}: there is no block {block}, only {plural(len(held), 'block')} with a blocked layout."
        )
    return held[block]


def draw_program(compiled: Compiled, block: int = 0) -> Picture:
    """Draw a program's block, its warps, the lanes of the first warp, and the elements of the first lanes.

    Raises:
        ValueError: there is no such block, or it has two dimensions.
    """
    held = _only(compiled, block)
    if len(held.shape) != 1:
        raise ValueError(f"The block {held.shape} has {len(held.shape)} dimensions: use draw_layout.")
    (size,), (run,) = held.shape, held.layout.size
    warps, rounds = held.layout.warps[0], max(1, size // held.layout.tile[0])
    shown = min(8, held.layout.threads[0])
    figure, axes = canvas(9.2, 4.3, (-0.3, 10.2), (6.3, -0.7))
    span = 32 * run
    title = f"one program: a block of {plural(size, 'element')}, {plural(warps, 'warp')}"
    axes.text(0, -0.3, title, fontsize=11.5, color=DARK)
    groups = min(warps * rounds, 16)
    for group in range(groups):
        number = held.layout.holder((group * span,))[0]
        _cell(axes, 10 * group / groups, 0.0, 10 / groups, 0.9, f"warp {number}", _shade(number), number % 2 == 1)
    title = f"the first {plural(span, 'element')}: lanes 0 to {shown - 1} of the 32 lanes of warp 0"
    axes.text(0, 1.95, title, fontsize=11.5, color=DARK)
    _zoom(axes, 10 / groups, 0.95, 2.2)
    for lane in range(shown):
        text = f"lane {held.layout.holder((lane * run,))[1]}"
        _cell(axes, 10 * lane / shown, 2.3, 10 / shown, 0.9, text, PALE if lane % 2 else LIGHT, lane % 2 == 1)
    cells = min(8, max(2 * run, 4))
    title = f"the first {plural(cells, 'element')}, each with its lane: a thread holds runs of {run}"
    axes.text(0, 4.3, title, fontsize=11.5, color=DARK)
    _zoom(axes, 10 * cells / run / shown, 3.25, 4.55)
    for element in range(cells):
        lane = held.layout.holder((element,))[1]
        _cell(axes, 10 * element / cells, 4.7, 10 / cells, 0.9, f"{element}: lane {lane}", PALE if lane % 2 else LIGHT,
              lane % 2 == 1)  # fmt: skip
    within = (
        f"lane 0 holds elements 0 to {run - 1}, lane 1 the next {run}, and so on"
        if run > 1
        else "each lane holds one element"
    )
    alt = (
        f"Three rows, each a zoom into the one above. A block of {plural(size, 'element')} is divided among "
        f"{plural(warps, 'warp')}, in pieces of {span}{f', {rounds} times' if rounds > 1 else ''}. Within a piece, "
        f"{within}."
    )
    return finish(figure, alt, width=820)


def draw_layout(compiled: Compiled, block: int = 0) -> Picture:
    """Draw a two-dimensional block as a grid: one box per run of elements that a thread holds.

    Raises:
        ValueError: there is no such block, or it does not have two dimensions.
    """
    held = _only(compiled, block)
    if len(held.shape) != 2:
        raise ValueError(f"The block {held.shape} has {len(held.shape)} dimensions: use draw_program.")
    layout, (rows, columns) = held.layout, held.shape
    down, across = rows // layout.size[0], columns // layout.size[1]
    if not down or not across:
        raise ValueError(f"The block {held.shape} is smaller than what one thread holds, {layout.size}.")
    shown = min(down, _MOST_CELLS)
    figure, axes = canvas(9.0, 0.24 * shown + 0.75, (-0.9, 10.1), (shown + 0.3, -1.5))
    title = f"{held.name}, {rows} × {columns}. Each box: one thread's {layout.size[0]} × {layout.size[1]}"
    title += f" (the first {plural(shown * layout.size[0], 'row')})" if shown < down else ""
    axes.text(0, -0.8, title, fontsize=11.5, color=DARK)
    for row, column in product(range(shown), range(across)):
        warp, lane = layout.holder((row * layout.size[0], column * layout.size[1]))
        text = f"warp {warp}, lane {lane}" if across <= 8 else str(lane)
        _cell(axes, 10 * column / across, row, 10 / across, 1, text, _shade(warp), warp % 2 == 1, 8.5)
    for row in range(0, shown, 4):
        write(axes, -0.1, row + 0.5, str(row * layout.size[0]), 8.5, "right")
    alt = (
        f"A {rows} by {columns} block as a grid. Each box is {layout.size[0]} by {layout.size[1]} = "
        f"{plural(prod(layout.size), 'element')} of one thread. A warp has {plural(layout.threads[1], 'lane')} side by "
        f"side and covers {plural(layout.threads[0] * layout.size[0], 'row')}. The block has "
        f"{plural(prod(layout.warps), 'warp')}."
    )
    return finish(figure, alt, width=820)


def draw_shared_memory(compiled: Compiled) -> Picture:
    """Draw the contents of shared memory over time, for a loop of six steps.

    Raises:
        ValueError: the kernel has no loop that copies ahead into shared memory.
    """
    plan = pipeline(compiled)
    if not plan.buffers:
        raise ValueError(
            f"{compiled.name} has no loop that copies ahead into shared memory, for sm_{compiled.capability}."
        )
    figure, axes = canvas(9.2, 4.6)
    first, last = -plan.ahead, _STEPS + (1 if plan.after else 0)
    top = max([plan.total_bytes, *(buffer.end for buffer in plan.buffers)])
    axes.set_xlim(first - 2.6, last + 0.1)
    axes.set_ylim(-0.14 * top, 1.12 * top)
    for buffer, slot in ((each, slot) for each in plan.buffers for slot in range(each.slots)):
        base = buffer.offset + slot * buffer.slot_bytes
        write(axes, first - 0.1, base + buffer.slot_bytes / 2, f"{buffer.name}, slot {slot}", 10, "right")
        for step in range(first, _STEPS):
            _draw_slot(axes, step, base, 1, buffer.slot_bytes, plan.state(slot, step, _STEPS))
    for buffer in plan.after:
        _draw_slot(axes, _STEPS, buffer.offset, 1, buffer.slot_bytes, "after")
    for step in range(first, last):
        name = "before" if step < 0 else "after" if step >= _STEPS else f"step {step}"
        write(axes, step + 0.5, -0.05 * top, name, 10)
    title = f"{plural(plan.total_bytes, 'byte')} of shared memory"
    axes.text(first - 2.6, 1.06 * top, title, fontsize=11, weight="bold", color=DARK)
    _legend(axes, first + 2.2, 1.06 * top, (last - first) / 9, 0.05 * top, bool(plan.after))
    return finish(figure, _said(plan), width=840)


def _said(plan: Pipeline) -> str:
    buffers = "; ".join(
        f"{buffer.name}, {plural(buffer.slots, 'slot')} of {plural(buffer.slot_bytes, 'byte')} "
        f"from offset {buffer.offset}"
        for buffer in plan.buffers
    )
    after = (
        f" After the loop, {plural(plan.after[0].slot_bytes, 'byte')} from offset {plan.after[0].offset} are reused to "
        "convert the result to another layout." if plan.after else ""
    )  # fmt: skip
    return (
        f"Shared memory over time. Buffers: {buffers}. In each step one slot is read while copies for the next "
        f"{plural(plan.ahead, 'step')} arrive. Those for the first {plural(plan.ahead, 'step')} start before the loop."
        f"{after}"
    )


_LOOKS = {"free": ("white", ""), "arriving": (PALE, "////"), "read": (BLUE, ""), "after": (ORANGE, "..")}


def _draw_slot(axes: Axes, x: float, y: float, width: float, height: float, state: str) -> None:
    fill, hatch = _LOOKS[state]
    rectangle(axes, (x, y), width, height, facecolor=fill, edgecolor=GREY, hatch=hatch, linewidth=0.8)


def _legend(axes: Axes, x: float, y: float, width: float, height: float, after: bool) -> None:
    words = {"arriving": "arriving", "read": "read", "free": "free"} | ({"after": "the result"} if after else {})
    for number, (state, word) in enumerate(words.items()):
        left = x + 1.75 * width * number
        _draw_slot(axes, left, y - height / 2, 0.4 * width, height, state)
        write(axes, left + 0.5 * width, y, word, 10, "left")


def _shade(number: int) -> str:
    return (LIGHT, PALE, "#DDDDDD", "#F3D79A")[number % 4]


def _cell(axes: Axes, x: float, y: float, width: float, height: float, text: str, fill: str, hatched: bool,
          size: float = 10) -> None:  # fmt: skip
    rectangle(axes, (x, y), width, height, facecolor=fill, edgecolor=DARK, linewidth=0.7)
    write(axes, x + width / 2, y + height / 2, text, size, weight="bold" if hatched else "normal")


def _zoom(axes: Axes, right: float, above: float, below: float) -> None:
    for x, end in ((0.0, 0.0), (right, 10.0)):
        axes.plot([x, end], [above, below + 0.08], color=GREY, linewidth=0.9, linestyle=":")
