"""Kernels and memory traffic of PyTorch operations, before and after Inductor fuses them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.explore.drawing.displays import BLUE, DARK, ORANGE, Picture, SideBySide, Table, chart, finish, write
from grader.results import RESULTS
from grader.words import plural

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Step:
    """One operation, and the bytes it must read from and write to memory."""

    operation: str
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True, repr=False)
class Traffic(Table):
    """The traffic of a call, operation by operation; shown in multiples of `unit_bytes`."""

    steps: tuple[Step, ...]
    unit_bytes: int

    @property
    def total_bytes(self) -> int:
        return sum(step.read_bytes + step.written_bytes for step in self.steps)

    @property
    def total(self) -> float:
        """Bytes read and written, in multiples of the unit."""
        return self.total_bytes / self.unit_bytes

    _left = 1

    def _table(self) -> list[tuple[str, str, str]]:
        moved = [(step.operation, step.read_bytes, step.written_bytes) for step in self.steps]
        moved.append(("total", sum(row[1] for row in moved), sum(row[2] for row in moved)))
        rows = [
            (name, _plain(read / self.unit_bytes), _plain(written / self.unit_bytes)) for name, read, written in moved
        ]
        return [("operation", "reads", "writes"), *rows]

    def _note(self) -> str:
        return f"In multiples of the first tensor, {self.unit_bytes / 2**20:,.1f} MiB."


def _plain(multiple: float) -> str:
    """Format with at most four decimals, without trailing zeros: 11, not 11.0000."""
    return f"{multiple:.4f}".rstrip("0").rstrip(".")


def count_traffic(function: Callable[..., Any], *tensors: torch.Tensor) -> Traffic:
    """Run `function(*tensors)` and count the bytes read and written by each PyTorch operation.

    The unit is the size of the first tensor. Views move nothing and are left out. Without caching, each operation
    reads every input once and writes every output once.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    steps: list[Step] = []

    class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            step = _step(func, args, kwargs, result)
            if step.read_bytes or step.written_bytes:
                steps.append(step)
            return result

    with Counter():  # type: ignore[no-untyped-call]
        function(*tensors)
    return Traffic(tuple(steps), _size(tensors[0]))


def _step(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Step:
    name = func._schema.name.split("::")[-1].strip("_")
    results = list(_tensors([result]))
    memory = {tensor.untyped_storage().data_ptr() for tensor in _tensors([*args, *kwargs.values()])}
    shared = bool(results) and all(each.untyped_storage().data_ptr() in memory for each in results)
    if (shared and not func._schema.is_mutable) or name.startswith("empty"):
        return Step(name, 0, 0)
    given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    overwritten = {argument.name for argument in func._schema.arguments if argument.is_out}
    read = sum(_size(t) for key, value in given.items() if key not in overwritten for t in _tensors([value]))
    return Step(name, read, sum(_size(tensor) for tensor in results))


def _tensors(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def draw_eager_and_fused(eager: Traffic) -> Picture:
    """Draw the counted traffic of an eager sequence, and below it that of one kernel that reads and writes once."""
    names = [step.operation for step in eager.steps]
    reads = [step.read_bytes / eager.unit_bytes for step in eager.steps]
    writes = [step.written_bytes / eager.unit_bytes for step in eager.steps]
    figure, axes = chart(9.4, 2.9)
    for y, parts in ((1, list(zip(names, reads, writes, strict=True))), (0, [("one kernel", 1.0, 1.0)])):
        left = 0.0
        for name, read, written in parts:
            start = left
            for amount, colour, hatch in ((read, BLUE, ""), (written, ORANGE, "///")):
                axes.barh(y, amount, left=left, height=0.5, color=colour, hatch=hatch, edgecolor="white", linewidth=1)
                left += amount
            axes.text((start + left) / 2, y + 0.33, name, ha="center", va="bottom", fontsize=11, color=DARK)
            axes.plot([left, left], [y - 0.3, y + 0.42], color=DARK, linewidth=1.2)
        write(axes, left + 0.1, y, f"{left:.1f}", 13, "left", weight="bold")
    axes.set(yticks=[0, 1], ylim=(-0.45, 1.75), xlim=(0, max(eager.total, 2) * 1.08))
    axes.set_yticklabels(["fused", "eager"], fontsize=13)
    axes.set_xlabel("traffic, in multiples of the matrix", fontsize=11)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    from matplotlib.patches import Patch

    writes_key = Patch(facecolor=ORANGE, hatch="///", edgecolor="white", label="writes")
    axes.legend(
        handles=[Patch(facecolor=BLUE, label="reads"), writes_key], loc="lower right", frameon=False, fontsize=11
    )
    alt = (
        f"Two bars. The eager sequence of {plural(len(names), 'operation')} ({', '.join(names)}) moves "
        f"{eager.total:.1f} times the matrix: {sum(reads):.1f} read, {sum(writes):.1f} written. One fused kernel reads "
        "it once and writes it once: 2."
    )
    return finish(figure, alt, width=780)


_NONE = "No recorded code yet.\nOn a machine with a GPU, make bench ARGS=fusion records it."
_BLOCK = re.compile(r"^(\w+) = async_compile\.(\w+)\((.*?)^'''", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Generated:
    """The generated code of a compiled function, and the function. `kernels` are (name, source) in file order."""

    text: str
    kernels: tuple[tuple[str, str], ...]
    language: str
    eager: Traffic
    function: Callable[..., Any]

    def __len__(self) -> int:
        """The number of generated kernels."""
        return len(self.kernels)

    def __repr__(self) -> str:
        return "\n\n".join(text for _, text in self.kernels)

    def beside_eager(self) -> SideBySide:
        """Show the eager operations, one kernel each, next to the kernels that replace them."""
        return _beside(self.eager, self.kernels, self.language)


@dataclass(frozen=True)
class RecordedCode:
    """Generated code that was recorded on a GPU, or a note that there is none yet."""

    text: str
    origin: str
    kernels: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.kernels)

    def __repr__(self) -> str:
        return "\n\n".join([*(text for _, text in self.kernels), self.origin])

    def beside_eager(self, function: Callable[..., Any], *tensors: Any) -> SideBySide:
        """Show the eager operations of `function(*tensors)` next to the kernels, which are named as recorded."""
        shown = self.kernels or (("", _NONE),)
        found = _beside(count_traffic(function, *tensors), shown, "Triton")
        title = f"{found.titles[1]}. {self.origin}" if self.kernels else "compiled, as Triton"
        return SideBySide((found.titles[0], title), found.sources)


def generated_code(function: Callable[..., Any], *tensors: Any) -> Generated:
    """Compile `function` with Inductor for these tensors, call it once, and return the generated code.

    The code is Triton for CUDA tensors, and C++ with OpenMP for CPU tensors, which needs a C++ compiler.
    """
    import torch
    from torch._inductor.graph import GraphLowering

    texts: list[str] = []
    before = GraphLowering.save_output_code
    GraphLowering.save_output_code = staticmethod(texts.append)
    try:
        compiled = torch.compile(function, fullgraph=True, dynamic=False, options=_quick())
        compiled(*tensors)
    finally:
        GraphLowering.save_output_code = before
    text = "\n".join(texts)
    kernels = kernels_of(text)
    language = "Triton" if "@triton.jit" in text else "C++"
    return Generated(text, kernels, language, count_traffic(function, *tensors), compiled)


def count_fused(function: Callable[..., Any], *tensors: Any) -> tuple[int, int | None]:
    """Count the kernels of `function(*tensors)`: (eager operations that move data, kernels after fusion).

    Nothing is generated, so this needs no compiler and no GPU. The second is None if this version of PyTorch
    does not have the hook that counting needs.
    """
    import torch

    from grader.worker.harnesses.compiled_graph import count_only

    counts: list[int | None] = []

    def backend(graph: Any, inputs: Any) -> Any:
        counts.append(count_only(graph, inputs))
        return graph.forward

    torch._dynamo.reset()
    torch.compile(function, fullgraph=True, dynamic=False, backend=backend)(*tensors)
    known = [count for count in counts if count is not None]
    return len(count_traffic(function, *tensors).steps), sum(known) if known else None


def recorded_code(name: str, folder: Path | None = None) -> RecordedCode:
    """Return the generated code that the bench `fusion` recorded under `name` on the most recently measured GPU.

    The file is `benchmarks/results/<gpu>-fusion-<name>.txt`; its first line says where and when.
    """
    found = sorted((RESULTS if folder is None else folder).glob(f"*-fusion-{name}.txt"), key=_when, reverse=True)
    if not found:
        return RecordedCode("", _NONE)
    first, _, text = found[0].read_text(encoding="utf-8").partition("\n")
    return RecordedCode(text, first.removeprefix("# "), kernels_of(text))


def kernels_of(text: str) -> tuple[tuple[str, str], ...]:
    """Return (name, source) of each kernel in Inductor's output, without the lines that only Inductor needs."""
    return tuple((name, _body(block)) for name, _, block in _BLOCK.findall(text))


def _body(block: str) -> str:
    source = block.partition("'''")[2].strip("\n")
    at = source.find("@triton.jit")
    lines = (source if at < 0 else source[at:]).splitlines()
    return "\n".join(line.rstrip() for line in lines if "integer_div" not in line)


def _when(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        found = re.search(r"\d{4}-\d{2}-\d{2}", file.readline())
    return found[0] if found else ""


def _quick() -> dict[str, Any]:
    """Return settings of this version that skip C++ compiler work which one small kernel does not need."""
    import torch._inductor.config as settings

    wanted = {"cpp.vec_isa_ok": True, "cpp_cache_precompile_headers": False}
    known = settings.get_config_copy()
    return {name: value for name, value in wanted.items() if name in known}


def _beside(eager: Traffic, kernels: tuple[tuple[str, str], ...], language: str) -> SideBySide:
    unit = eager.unit_bytes
    lines = [
        f"{step.operation:<8} reads {step.read_bytes / unit:g}, writes {step.written_bytes / unit:g}"
        for step in eager.steps
    ]
    total = f"{'total':<8} {eager.total:g} × the input"
    titles = (
        f"eager: {plural(len(eager.steps), 'kernel')}",
        f"compiled, as {language}: {plural(len(kernels), 'kernel')}",
    )
    return SideBySide(titles, ("\n".join([*lines, "", total]), "\n\n".join(source for _, source in kernels)))
