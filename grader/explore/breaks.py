"""Where TorchDynamo ends a graph, and why: the line, and its reason in a sentence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

__all__ = ["Break", "Breaks", "graph_breaks"]


_JUMP = "Python must know a value of a tensor to decide which way to go."  # Dynamo says "generic_jump"


@dataclass(frozen=True)
class Break:
    """One break: the line's number in its cell or file, the line, and what Dynamo says."""

    line: int | None
    code: str
    reason: str


@dataclass(frozen=True)
class Breaks:
    """The breaks of one call, in their order, and how many graphs there are. A table in a notebook."""

    found: tuple[Break, ...]
    graphs: int

    def __len__(self) -> int:
        return len(self.found)

    def __repr__(self) -> str:
        lines = [f"line {one.line}: {one.code}\n    {one.reason}" for one in self.found]
        return "\n".join([*lines, self._summary()])

    def _summary(self) -> str:
        graphs, breaks = self.graphs, len(self.found)
        return f"{graphs} graph{'s' * (graphs != 1)}, {breaks} break{'s' * (breaks != 1)}"

    def _repr_html_(self) -> str:
        left = "text-align:left; vertical-align:top"
        rows = "".join(
            f"<tr><td>{one.line}</td><td style='{left}'><code>{escape(one.code)}</code></td>"
            f"<td style='{left}'>{escape(one.reason)}</td></tr>"
            for one in self.found
        )
        head = f"<tr><th>line</th><th style='{left}'>code</th><th style='{left}'>why the graph ends here</th></tr>"
        return f"<table>{head}{rows}</table><p>{self._summary()}</p>" if rows else f"<p>{self._summary()}</p>"


def graph_breaks(function: Callable[..., Any], *arguments: Any) -> Breaks:
    """Run `function(*arguments)` under `torch._dynamo.explain`, and list the breaks that it found.

    Raises:
        RuntimeError: this version of PyTorch has no `explain`.
    """
    import torch

    explain = getattr(torch._dynamo, "explain", None)
    if explain is None:
        raise RuntimeError(f"PyTorch {torch.__version__} has no torch._dynamo.explain. TORCH_LOGS=graph_breaks tells.")
    torch._dynamo.reset()
    with _quiet():
        found = explain(function)(*arguments)
    torch._dynamo.reset()
    return Breaks(tuple(_break(reason) for reason in found.break_reasons), int(found.graph_count))


def _break(reason: Any) -> Break:
    frame = reason.user_stack[-1] if reason.user_stack else None
    text = str(reason.reason).strip()
    words = [line.strip() for line in text.split("\n") if line.strip()]
    explanation = next((line.removeprefix("Explanation: ") for line in words if line.startswith("Explanation: ")), "")
    said = _JUMP if text.startswith("generic_jump") else words[0] if words else "no reason given"
    return Break(getattr(frame, "lineno", None), (getattr(frame, "line", "") or "").strip(), explanation or said)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that Dynamo writes to stderr of each break: they stand in the table."""
    loggers = [logging.getLogger(name) for name in ("torch._dynamo", "torch.fx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
