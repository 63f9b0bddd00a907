"""A kernel and what the compiler makes of it, each line with the line of Python that it comes from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from grader.explore.compiled import GENERATIONS, STAGES, Compiled, Line, compile_kernel

__all__ = ["CompilerView", "explore_compiler"]

_SHOWN = ("ttgir", "ptx")
_FONT = "font-family:var(--jp-code-font-family, monospace); font-size:11.5px; line-height:1.45"
_STYLE = """
#{id} .panes {{ display:grid; grid-template-columns:repeat(2, minmax(0, 1fr)); gap:10px; }}
#{id} .pane {{ border:1px solid #888; border-radius:4px; }}
#{id} .pane > b {{ display:block; padding:4px 10px; border-bottom:1px solid #888; }}
#{id} .python {{ grid-column:1 / -1; }}
#{id} .code {{ max-height:34em; overflow:auto; padding:4px 0; {font}; }}
#{id} .code div {{ white-space:pre; padding-right:10px; min-width:max-content; }}
#{id} .code i {{ display:inline-block; width:2.6em; margin-right:.8em; text-align:right; font-style:normal; }}
#{id} .code i {{ opacity:.65; }}
#{id} .code s {{ text-decoration:none; opacity:.65; }}
{rules}
"""
_RULE = "#{id}:has(.l{n}:hover) .l{n} {{ background:#F3D79A; color:#222; font-weight:bold; }}"


@dataclass(frozen=True)
class CompilerView:
    """A kernel's Python above two of its stages. In JupyterLab the stages and the GPU can be chosen.

    The number before a line is the line of Python that it comes from; point at a line, and all that belong to it light
    up. A page, and a terminal, have the GPU and the stages that are shown first.
    """

    compile: Callable[[int], Compiled]
    capability: int
    stages: tuple[str, str] = _SHOWN
    _known: dict[int, Compiled] = field(default_factory=dict, repr=False)

    def compiled(self, capability: int | None = None) -> Compiled:
        """The kernel, compiled once for each GPU."""
        wanted = self.capability if capability is None else capability
        if wanted not in self._known:
            self._known[wanted] = self.compile(wanted)
        return self._known[wanted]

    def page(self, capability: int | None = None, stages: tuple[str, str] | None = None) -> str:
        """The HTML: Python, the two stages side by side, and below them what the kernel needs."""
        return _page(self.compiled(capability), stages or self.stages)

    def __repr__(self) -> str:
        compiled = self.compiled()
        found = {name: Counter(line.python for line in compiled.lines(name)) for name in self.stages}
        width = max(map(len, compiled.python.splitlines()))
        head = f"{'':>4}{'':<{width}}  " + "  ".join(f"{STAGES[name]:>12}" for name in self.stages)
        rows = (
            f"{number:>3} {text:<{width}}  " + "  ".join(f"{found[name][number] or '':>12}" for name in self.stages)
            for number, text in enumerate(compiled.python.splitlines(), start=1)
        )
        return "\n".join([head, *(row.rstrip() for row in rows), "", repr(compiled)])

    def widget(self) -> Any:
        """The page under knobs for the GPU and the two stages; a new one each time. Raises ImportError."""
        import ipywidgets

        wide = ipywidgets.Layout(width="22em")
        gpu = ipywidgets.Dropdown(
            options=[(f"sm_{number}: {name}", number) for number, name in GENERATIONS.items()], value=self.capability,
            description="GPU", layout=wide,
        )  # fmt: skip
        choices = [(title, name) for name, title in STAGES.items()]
        left, right = (
            ipywidgets.Dropdown(options=choices, value=name, description=side, layout=wide)
            for name, side in zip(self.stages, ("left", "right"), strict=True)
        )
        page = ipywidgets.HTML(self.page(), layout=ipywidgets.Layout(width="calc(100% - 1.5em)"))

        def redraw(change: Any) -> None:
            try:
                page.value = self.page(gpu.value, (left.value, right.value))
            except RuntimeError as error:
                page.value = f"<p>{escape(str(error))}</p>"

        for knob in (gpu, left, right):
            knob.observe(redraw, names="value")
        return ipywidgets.VBox([ipywidgets.HBox([gpu, left, right]), page])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        still = {"text/plain": repr(self), "text/html": self.page()}
        try:
            shown = self.widget()._repr_mimebundle_()
        except (ImportError, AttributeError):
            return still
        return {**(shown or {}), **still}


def explore_compiler(kernel: Any, *arguments: Any, capability: int = 90, **options: Any) -> CompilerView:
    """Show what the launch `kernel[grid](*arguments, **options)` is compiled to. It needs no GPU, and runs nothing.

    Args:
        kernel: a `@triton.jit` function.
        arguments: those of the launch; of tensors only the type and the alignment count.
        capability: the GPU that is shown first, 90 for an H100 or H200.
        options: arguments by name, and `num_warps` and its kin.

    Raises:
        CompileFailed: the kernel does not compile; the message is the compiler's.
    """
    view = CompilerView(lambda wanted: compile_kernel(kernel, *arguments, capability=wanted, **options), capability)
    view.compiled()
    return view


def _page(compiled: Compiled, stages: tuple[str, str]) -> str:
    """The style finds partner lines by class. A notebook may show several pages, so each has an id of its own."""
    told = f"{compiled.name}{compiled.capability}{stages}{compiled.ptx}"
    own = "c" + hashlib.sha256(told.encode()).hexdigest()[:10]
    python = compiled.python.splitlines()
    lines: Mapping[str, list[Line]] = {name: compiled.lines(name) for name in stages}
    counted = {name: Counter(line.python for line in found) for name, found in lines.items()}
    width = max(map(len, python))
    numbered = [Line(f"{text:<{width}}", number) for number, text in enumerate(python, start=1)]
    notes = {
        number: " · ".join(f"{STAGES[name]} {counted[name][number]}" for name in stages if counted[name][number])
        for number in range(1, len(python) + 1)
    }
    rules = "\n".join(_RULE.format(id=own, n=number) for number in range(1, len(python) + 1))
    panes = [_pane("Python, and how many lines come of each", numbered, notes, " python")]
    panes += [_pane(STAGES[name], found, {}) for name, found in lines.items()]
    return (
        f"<style>{_STYLE.format(id=own, font=_FONT, rules=rules)}</style>"
        f'<div id="{own}"><div class="panes">{"".join(panes)}</div>'
        f"{compiled._repr_html_()}</div>"
    )


def _pane(title: str, lines: list[Line], notes: Mapping[int, str], kind: str = "") -> str:
    rows = []
    for line in lines:
        name = "" if line.python is None else f' class="l{line.python}"'
        note = notes.get(line.python or 0, "")
        said = f"<s>  → {escape(note)}</s>" if note else ""
        rows.append(f"<div{name}><i>{line.python or ''}</i>{escape(line.text) or ' '}{said}</div>")
    return f'<div class="pane{kind}"><b>{escape(title)}</b><div class="code">{"".join(rows)}</div></div>'
