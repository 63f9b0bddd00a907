"""One float16 product for Hopper GPUs in several languages: its listings, its machine code, and its speed.

The products are the files of `products`. A line `#: copy` (in CUDA C++ `//: copy`) says that the lines below it do this
part of the work, up to the next such line; `rest` ends a part.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from operator import truediv
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from grader.explore.drawing.displays import Table
from grader.explore.drawing.recorded_results import recorded

PRODUCTS = Path(__file__).with_name("products")
FILES = {"cuTile": "cutile_product", "Triton": "triton_product", "Gluon": "gluon_product", "CUDA C++": "cuda_product"}
PARTS = ("copy", "barrier", "multiply", "store")
_COLOURS = {"copy": "#FCE8BF", "barrier": "#E4D5EC", "multiply": "#CFE4F5", "store": "#D6EFD8"}
_MARK = re.compile(r"\s*(?:#|//): (\w+)$")
_COMMENT = re.compile(r"\s*(?:#|//)(?!include|pragma)")
_INSTRUCTIONS = {  # a row of the table, and the machine code that it counts
    "WGMMA (HGMMA)": "HGMMA", "copies in by TMA (UTMALDG)": "UTMALDG", "copies out by TMA (UTMASTG)": "UTMASTG",
    "waits that leave a WGMMA in flight": r"WARPGROUP\.DEPBAR\.LE gsb0, 0x1",
    "other loads from memory (LDG)": r"LDG\b", "other stores to memory (STG)": r"STG\b",
}  # fmt: skip
_SIZE = 4096


@dataclass(frozen=True, repr=False)
class Listing:
    """A product's source. In a notebook, each line has the colour of its part; in a terminal, its first letter."""

    language: str
    lines: tuple[tuple[str, str], ...]

    def counts(self) -> Counter[str]:
        """Return the lines of code in each part, without comments and blank lines."""
        return Counter(part for text, part in self.lines if text.strip() and not _COMMENT.match(text))

    def __repr__(self) -> str:
        return "\n".join(f"{'' if part == 'rest' else part[0]:1} {text}" for text, part in self.lines)

    def _repr_html_(self) -> str:
        key = " ".join(f'<span style="{_style(part)}; padding:1px 8px">{part}</span>' for part in PARTS)
        lines = "".join(f'<div style="{_style(part)}">{escape(text) or " "}</div>' for text, part in self.lines)
        style = "font-family:var(--jp-code-font-family, monospace); font-size:12px; line-height:1.4; white-space:pre"
        listing = f'<div style="{style}; max-height:60em; overflow:auto">{lines}</div>'
        return f"<p><b>{escape(self.language)}</b> {key}</p>{listing}"


def _style(part: str) -> str:
    return f"background:{_COLOURS[part]}; color:#222" if part in _COLOURS else ""


def show_product(language: str) -> Listing:
    """Return the product's listing, without its docstring. The languages are the keys of `FILES`."""
    text = _path(language).read_text(encoding="utf-8")
    body = text.split('"""\n', 1)[1].replace("# mypy: ignore-errors\n", "").strip()
    lines, part = [], "rest"
    for line in body.splitlines():
        if mark := _MARK.match(line):
            part = mark[1]
        else:
            lines.append((line.removesuffix("  # fmt: skip"), part if line.strip() else "rest"))
    return Listing(language, tuple(lines))


def _path(language: str) -> Path:
    if language not in FILES:
        raise ValueError(f"There is a product in {', '.join(FILES)}; none in {language!r}.")
    return PRODUCTS / f"{FILES[language]}.py"


@dataclass(frozen=True, repr=False)
class _Counts(Table):
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    _left = 1

    def _table(self) -> list[list[str]]:
        return [list(row) for row in self.rows]

    def _note(self) -> str:
        return self.note


def count_lines() -> Table:
    """Return a table: the lines of code of each product, in all and in each part."""
    head = ("lines of code", *PARTS, "rest", "total")
    found = {language: show_product(language).counts() for language in FILES}
    body = (
        (language, *(str(counts[part]) for part in (*PARTS, "rest")), str(counts.total()))
        for language, counts in found.items()
    )
    return _Counts((head, *body))


def hopper_product(language: str) -> Callable[[Any, Any, Any], None]:
    """Return `product(a, b, out)` in this language, for float16 matrices in row-major order on a Hopper GPU.

    Raises:
        ImportError: the language's package is not installed.
    """
    return _module(language).product  # type: ignore[no-any-return]


def _module(language: str) -> ModuleType:
    path = _path(language)
    return sys.modules.get(path.stem) or load_file(path)


def load_file(path: Path) -> ModuleType:
    """Import a file as the module of its name. Triton reads the file again, so it has to stay."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


@dataclass(frozen=True)
class MachineCode:
    """A compiled product: its SASS, the registers per thread, and the spilled bytes per thread."""

    sass: str
    registers: int
    spilled_bytes: int

    def count(self, name: str) -> int:
        """Return the number of instructions whose name begins with `name`."""
        return len(re.findall(rf"(?<![\w.]){name}", self.sass))


def compiled_products() -> Mapping[str, MachineCode]:
    """Compile the products for an H100 or H200, without a GPU. cuTile is left out: its compiler is not installed here.

    Raises:
        CompileFailed, RuntimeError: a product does not compile.
    """
    return {"Triton": _by_triton("Triton"), "Gluon": _by_triton("Gluon"), "CUDA C++": _by_nvrtc()}


def _by_triton(language: str) -> MachineCode:
    """Compile the product as its own launch would."""
    from grader.explore.triton_compiler.compiled_stages import compiled_file

    gluon = language == "Gluon"
    pointer = {"tensor": "float16", "aligned": True}
    layout = {"swizzle_byte_width": 128, "element_bitwidth": 16}
    shared = {"descriptor": "float16", "shape": [_SIZE, _SIZE], "strides": [_SIZE, 1], "layout": layout}
    blocks = {"a": [128, 64], "b": [64, 256], "out": [128, 128]}
    operands = (
        {name: shared | {"block_shape": block} for name, block in blocks.items()}
        if gluon
        else {f"{name}_ptr": pointer for name in blocks}
    )
    sizes = {"STAGES": 4, "GROUP": 16, "num_warps": 8} if gluon else _TRITON
    values = {name: {"value": value} for name, value in ({"M": _SIZE, "N": _SIZE, "K": _SIZE} | sizes).items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(_path(language), folder))
        found = compiled_file(path, "kernel", operands | values)
    return MachineCode(found.texts["sass"], found.registers, found.stack_bytes)


_TRITON = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 16, "num_warps": 4, "num_stages": 3}


def _by_nvrtc() -> MachineCode:
    from grader.explore.ladder.machine_code import nvrtc_view

    view = nvrtc_view(_module("CUDA C++").device_source, "-diag-suppress=177", capability="90a")
    return MachineCode(view.sass, view.registers["kernel"], view.spilled_bytes)


def count_hopper_instructions() -> Table:
    """Return a table: the instructions of each product's machine code that only a Hopper GPU has, and its registers."""
    found = compiled_products()
    body = [(row, *(str(each.count(name)) for each in found.values())) for row, name in _INSTRUCTIONS.items()]
    body.append(("registers per thread", *(str(each.registers) for each in found.values())))
    body.append(("spilled bytes per thread", *(str(each.spilled_bytes) for each in found.values())))
    return _Counts((("in the machine code", *found), *body), "Compiled now, for an H100 or H200. Nothing ran.")


_ROUNDS = 40
_TOLERANCE = 0.1  # of a sum of 4,096 products of normal numbers, whose standard deviation is 64


def time_products(size: int = _SIZE) -> Table:
    """Time each product of two random `size` × `size` matrices against cuBLAS, on a Hopper GPU.

    Elsewhere, return the recorded rates.
    """
    import torch

    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9:
        return recorded("languages", "rate_tflops", "ratio_vs_cublas")
    a, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    out, expected = torch.empty_like(a), a @ b
    calls: dict[str, Callable[[], Any]] = {"cuBLAS": lambda: torch.mm(a, b, out=out)}
    missing = []
    for language in FILES:
        try:
            product = hopper_product(language)
            product(a, b, out.zero_())
        except (ImportError, OSError, RuntimeError) as error:
            missing.append(f"{language} is not measured: {str(error).strip().splitlines()[0]}.")
            continue
        if not torch.allclose(out, expected, rtol=0.01, atol=_TOLERANCE):
            raise ArithmeticError(f"The product in {language} is wrong on this GPU.")
        calls[language] = partial(product, a, b, out)
    times = _in_turn(calls)
    rows = (
        (name, _tflops(size, median(ms)), f"{median(map(truediv, times['cuBLAS'], ms)):.2f}")
        for name, ms in times.items()
    )
    head = (f"measured now, at {size}", "TFLOPS", "times as fast as cuBLAS")
    return _Counts((head, *rows), " ".join(missing))


def _in_turn(calls: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Return each call's times in ms. All are called once per round, so that other work on the GPU slows all alike."""
    import torch

    event: Any = torch.cuda.Event
    marks: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
    for number in range(_ROUNDS + 3):  # the first three warm up
        for name, call in calls.items():
            start, end = (event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            if number >= 3:
                marks[name].append((start, end))
    torch.cuda.synchronize()
    return {name: [start.elapsed_time(end) for start, end in pairs] for name, pairs in marks.items()}


def _tflops(size: int, ms: float) -> str:
    return f"{2 * size**3 / ms / 1e9:.0f}"
