"""What Inductor makes of a function: the text that it generates, and how many kernels there are before and after."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.explore.listings import SideBySide
from grader.explore.traffic import Traffic, count_traffic
from grader.results import RESULTS

__all__ = ["Generated", "RecordedCode", "count_fused", "generated_code", "recorded_code"]

_GONE = "This version of PyTorch ({}) does not hand out the text that it generates: {} is gone."
_NONE = "No recorded code yet.\nOn a machine with a GPU, make bench ARGS=fusion records it."
_BLOCK = re.compile(r"^(\w+) = async_compile\.(\w+)\((.*?)^'''", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Generated:
    """The text of a compiled function, and the function. `kernels` are (name, text) in the order of the file."""

    text: str
    kernels: tuple[tuple[str, str], ...]
    language: str
    eager: Traffic
    function: Callable[..., Any]

    @property
    def note(self) -> str:
        return ""

    def __len__(self) -> int:
        """How many kernels were generated."""
        return len(self.kernels)

    def __repr__(self) -> str:
        return "\n\n".join(text for _, text in self.kernels)

    def beside_eager(self) -> SideBySide:
        """The eager operations, each a kernel of its own, beside the kernels that replace them."""
        return _beside(self.eager, self.kernels, self.language)


@dataclass(frozen=True)
class RecordedCode:
    """Generated text that was recorded on a GPU, or that there is none yet."""

    text: str
    origin: str
    kernels: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.kernels)

    def __repr__(self) -> str:
        return "\n\n".join([*(text for _, text in self.kernels), self.origin])

    def beside_eager(self, function: Callable[..., Any], *tensors: Any) -> SideBySide:
        """The eager operations of `function(*tensors)` beside the recorded kernels, named as recorded."""
        shown = self.kernels or (("", _NONE),)
        found = _beside(count_traffic(function, *tensors), shown, "Triton")
        title = f"{found.titles[1]}. {self.origin}" if self.kernels else "compiled, as Triton"
        return SideBySide((found.titles[0], title), found.sources)


def generated_code(function: Callable[..., Any], *tensors: Any) -> Generated:
    """Compile `function` with Inductor for these tensors, call it once, and keep the text that was generated.

    C++ with OpenMP for CPU tensors (this calls a C++ compiler), Triton for CUDA tensors.

    Raises:
        RuntimeError: this version of PyTorch offers no way to read the text.
    """
    import torch
    from torch._inductor.graph import GraphLowering

    if not hasattr(GraphLowering, "save_output_code"):
        raise RuntimeError(_GONE.format(torch.__version__, "GraphLowering.save_output_code"))
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
    return Generated(text, kernels, _language(text), count_traffic(function, *tensors), compiled)


def count_fused(function: Callable[..., Any], *tensors: Any) -> tuple[int, int | None]:
    """Kernels of `function(*tensors)` before and after fusion: (eager operations that move data, fused kernels).

    Nothing is generated, so this needs no compiler and no GPU. The second is None where this version of PyTorch lacks
    the hook that counting needs.
    """
    import torch

    from grader.worker.fusion import count_only

    counts: list[int | None] = []

    def backend(graph: Any, inputs: Any) -> Any:
        counts.append(count_only(graph, inputs))
        return graph.forward

    torch._dynamo.reset()
    torch.compile(function, fullgraph=True, dynamic=False, backend=backend)(*tensors)
    known = [count for count in counts if count is not None]
    return len(count_traffic(function, *tensors).steps), sum(known) if known else None


def recorded_code(name: str, folder: Path | None = None) -> RecordedCode:
    """The generated text that the bench `fusion` recorded under `name`, of the GPU that was measured last.

    The file is `benchmarks/results/<gpu>-fusion-<name>.txt`; its first line says where and when.
    """
    found = sorted((RESULTS if folder is None else folder).glob(f"*-fusion-{name}.txt"), key=_date, reverse=True)
    if not found:
        return RecordedCode("", _NONE)
    first, _, text = found[0].read_text(encoding="utf-8").partition("\n")
    return RecordedCode(text, first.removeprefix("# "), kernels_of(text))


def kernels_of(text: str) -> tuple[tuple[str, str], ...]:
    """(name, source) of each kernel in the text that Inductor wrote, without the lines that only it needs."""
    return tuple((name, _body(block)) for name, _, block in _BLOCK.findall(text))


def _body(block: str) -> str:
    source = block.partition("'''")[2].strip("\n")
    at = source.find("@triton.jit")
    lines = (source if at < 0 else source[at:]).splitlines()
    return "\n".join(line.rstrip() for line in lines if "integer_div" not in line)


def _date(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        found = re.search(r"\d{4}-\d{2}-\d{2}", file.readline())
    return found[0] if found else ""


def _language(text: str) -> str:
    return "Triton" if "@triton.jit" in text else "C++"


def _quick() -> dict[str, Any]:
    """Settings that spare the C++ compiler what one small kernel does not repay, those of them that there are."""
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
    total = f"{'together':<8} {eager.total:g} × the input"
    count = len(kernels)
    titles = (f"eager: {len(eager.steps)} kernels", f"compiled, as {language}: {count} kernel{'s' * (count != 1)}")
    return SideBySide(titles, ("\n".join([*lines, "", total]), "\n\n".join(source for _, source in kernels)))
