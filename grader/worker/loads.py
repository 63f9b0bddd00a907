"""The loads from global memory in a text of PTX, and what the text of TritonGPU IR tells of them."""

from __future__ import annotations

import re
from collections import Counter
from math import prod

__all__ = [
    "asynchronous_bytes",
    "elements_of_a_thread",
    "has_bulk_copies",
    "load_widths",
    "run_of_a_thread",
    "without_masks",
]

_LINE_COMMENT = re.compile(r"//[^\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LOAD = re.compile(r"(?<![\w.])ld(?P<parts>(?:\.[\w:]+)+)")
_LANES = re.compile(r"v(\d+)")
_TYPE = re.compile(r"[busf](\d+)")
_ASYNCHRONOUS = re.compile(
    r"(?<![\w.])cp\.async\.c[ag]\.shared[\w.:]*\.global[\w.:]*\s*\[[^]]*\]\s*,\s*\[[^]]*\]\s*,\s*(\w+)"
)
_BULK = re.compile(r"(?<![\w.])cp\.async\.bulk[\w.:]*\.shared[\w.:]*\.global")
_LOADED = re.compile(  # the second: a load of a loop with stages
    r"(?:tt\.load|ttg\.async_copy_global_to_local) .*: tensor<([\dx]+)x!tt\.ptr<\w+>, (#\w+)>"
)
_MASKED = re.compile(
    r"(\btt\.load %[\w#]+)(?:, %[\w#]+){1,2}"
    r"|(\bttg\.async_copy_global_to_local %[\w#]+, %[\w#]+) mask %[\w#]+(?: other %[\w#]+)?"
)
_LAYOUT = re.compile(r"^(#\w+) = #ttg\.blocked<\{sizePerThread = \[([\d, ]+)\]", re.MULTILINE)
_WARPS = re.compile(r'"ttg\.num-warps" = (\d+)')


def _without_comments(ptx: str) -> str:
    return _LINE_COMMENT.sub("", _BLOCK_COMMENT.sub(" ", ptx))


def load_widths(ptx: str) -> Counter[int]:
    """How many `ld` instructions from global memory move so many bytes of one thread: {16: 2, 4: 1}."""
    widths: Counter[int] = Counter()
    for found in _LOAD.finditer(_without_comments(ptx)):
        parts = found["parts"].split(".")[1:]
        sizes = [int(match[1]) for part in parts if (match := _TYPE.fullmatch(part))]
        if "global" in parts and sizes:
            lanes = [int(match[1]) for part in parts if (match := _LANES.fullmatch(part))]
            widths[(lanes or [1])[0] * sizes[-1] // 8] += 1
    return widths


def asynchronous_bytes(ptx: str) -> Counter[int]:
    """The same for `cp.async`, which copies from global to shared memory without a register in between."""
    sizes = (found[1] for found in _ASYNCHRONOUS.finditer(_without_comments(ptx)))
    return Counter(int(size, 0) for size in sizes if size[0].isdigit())


def has_bulk_copies(ptx: str) -> bool:
    """Whether the Tensor Memory Accelerator moves tiles (tensor descriptors)."""
    return _BULK.search(_without_comments(ptx)) is not None


def _layouts(ttgir: str) -> dict[str, list[int]]:
    return {name: [int(n) for n in sizes.split(",")] for name, sizes in _LAYOUT.findall(ttgir)}


def elements_of_a_thread(ttgir: str) -> int:
    """How many elements of the largest block that is loaded fall to one thread; less than 1 counts as 1."""
    warps = _WARPS.search(ttgir)
    threads = 32 * int(warps[1]) if warps else 128
    sizes = [prod(map(int, shape.split("x"))) for shape, _ in _LOADED.findall(ttgir)]
    return max([1, *(size // threads for size in sizes)])


def run_of_a_thread(ttgir: str) -> int:
    """How many neighbouring elements one thread holds in the layout of a load: the most among the loads of blocks."""
    layouts = _layouts(ttgir)
    return max([1, *(prod(layouts[name]) for _, name in _LOADED.findall(ttgir) if name in layouts)])


def without_masks(ttgir: str) -> str:
    """The same code with loads of everything: to find out whether a mask keeps them narrow."""
    return _MASKED.sub(lambda found: found[1] or found[2], ttgir)
