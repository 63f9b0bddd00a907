"""Count what a sequence of PyTorch operations reads and writes, and draw it beside what a fused kernel needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.explore.picture import BLUE, DARK, ORANGE, Picture

if TYPE_CHECKING:
    import torch

__all__ = ["Step", "Traffic", "count_traffic", "draw_eager_and_fused"]


@dataclass(frozen=True)
class Step:
    """One operation, and the bytes that it must read from memory and write to it."""

    operation: str
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True)
class Traffic:
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

    def _rows(self) -> list[tuple[str, float, float]]:
        unit = self.unit_bytes
        rows = [(step.operation, step.read_bytes / unit, step.written_bytes / unit) for step in self.steps]
        return [*rows, ("together", sum(row[1] for row in rows), sum(row[2] for row in rows))]

    def __repr__(self) -> str:
        lines = [f"{'operation':<12}{'reads':>9}{'writes':>9}"]
        lines += [f"{name:<12}{_plain(read):>9}{_plain(written):>9}" for name, read, written in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        head = "<tr><th style='text-align:left'>operation</th><th>reads</th><th>writes</th></tr>"
        body = "".join(
            f"<tr><td style='text-align:left'>{escape(name)}</td><td>{_plain(read)}</td><td>{_plain(written)}</td></tr>"
            for name, read, written in self._rows()
        )
        caption = f"in multiples of the matrix ({self.unit_bytes / 2**20:,.1f} MiB)"
        return f"<table><caption style='white-space:nowrap'>{caption}</caption>{head}{body}</table>"


def _plain(multiple: float) -> str:
    """At most four decimals, and no zeros at their end: 11, not 11.0000."""
    return f"{multiple:.4f}".rstrip("0").rstrip(".")


def count_traffic(function: Callable[..., Any], *tensors: torch.Tensor) -> Traffic:
    """Run `function(*tensors)` and count, for each operation that PyTorch starts, the bytes in and out.

    The unit is the size of the first tensor. Views move nothing and are left out. Counted is what each operation
    must move if nothing stays in a cache: every input once, every output once.
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
    if getattr(func, "is_view", False) or name.startswith(("empty", "detach")):
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
    """The counted traffic of an eager sequence, bar by bar, above that of one kernel that reads and writes once."""
    from matplotlib.figure import Figure

    from grader.explore.picture import finish

    names = [step.operation for step in eager.steps]
    reads = [step.read_bytes / eager.unit_bytes for step in eager.steps]
    writes = [step.written_bytes / eager.unit_bytes for step in eager.steps]
    figure = Figure(figsize=(9.4, 2.9), layout="constrained")
    axes = figure.add_subplot()
    for y, parts in ((1, list(zip(names, reads, writes, strict=True))), (0, [("one kernel", 1.0, 1.0)])):
        left = 0.0
        for name, read, written in parts:
            start = left
            for amount, colour, hatch in ((read, BLUE, ""), (written, ORANGE, "///")):
                axes.barh(y, amount, left=left, height=0.5, color=colour, hatch=hatch, edgecolor="white", linewidth=1)
                left += amount
            axes.text((start + left) / 2, y + 0.33, name, ha="center", va="bottom", fontsize=11, color=DARK)
            axes.plot([left, left], [y - 0.3, y + 0.42], color=DARK, linewidth=1.2)
        axes.text(left + 0.1, y, f"{left:.1f}", va="center", fontsize=13, weight="bold", color=DARK)
    axes.set(yticks=[0, 1], ylim=(-0.45, 1.75), xlim=(0, max(eager.total, 2) * 1.08))
    axes.set_yticklabels(["fused", "eager"], fontsize=13)
    axes.set_xlabel("traffic, in multiples of the matrix", fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    from matplotlib.patches import Patch

    writes_key = Patch(facecolor=ORANGE, hatch="///", edgecolor="white", label="writes")
    axes.legend(
        handles=[Patch(facecolor=BLUE, label="reads"), writes_key], loc="lower right", frameon=False, fontsize=11
    )
    alt = (
        f"Two bars. The eager sequence of {len(names)} operations ({', '.join(names)}) reads {sum(reads):.1f} and "
        f"writes {sum(writes):.1f} times the matrix, {eager.total:.1f} together. One fused kernel reads it once and "
        "writes it once: 2."
    )
    return finish(figure, alt, width=780)
