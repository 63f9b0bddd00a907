"""A Triton kernel compiled without a GPU: its text at each stage, line by line, and its instructions."""

from __future__ import annotations

import ast
import atexit
import hashlib
import inspect
import re
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from grader.explore.drawing.displays import Interactive
from grader.explore.ladder.machine_code import disassembled
from grader.words import plural
from grader.worker.harnesses.triton_kernels import asynchronous_bytes, load_widths
from grader.worker.toolchain.compile_only import Compiler, described

GENERATIONS: dict[int, str] = {
    75: "Turing, T4", 80: "Ampere, A100", 86: "Ampere, RTX 30", 89: "Ada, RTX 40, L4", 90: "Hopper, H100, H200",
    100: "Blackwell, B200", 120: "Blackwell, RTX 50",
}  # fmt: skip
STAGES: dict[str, str] = {
    "ast": "Python's tree", "ttir": "Triton IR", "ttgir": "TritonGPU IR", "llir": "LLVM IR", "ptx": "PTX",
    "sass": "SASS",
}  # fmt: skip
_HEAD = "import triton\nimport triton.language as tl\n\n"
_LOCATION = re.compile(r"^#(loc\d*) = loc\((.*)\)$")
_AT = re.compile(r'"[^"]*":(\d+):\d+')
_USED = re.compile(r"\bloc\(#(loc\d*)\)\s*$")
_DEBUG = re.compile(r"!dbg !(\d+)\b")
_DEBUG_LINE = re.compile(r"^!(\d+) = !DILocation\(line: (\d+)")
_PTX_LINE = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)\s")
_SASS_LINE = re.compile(r'^\s*//## File ".*", line (\d+)')
_COMPILER = Compiler()  # one process for all kernels of a notebook
atexit.register(_COMPILER.close)


@dataclass(frozen=True)
class Line:
    """A line of a stage, and the line of the kernel it comes from, if known."""

    text: str
    python: int | None = None


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel: the text of each stage, and the SM resources it uses."""

    name: str
    capability: int
    python: str
    texts: Mapping[str, str]
    allocated: str
    num_warps: int
    registers: int
    stack_bytes: int
    shared_bytes: int
    first_line: int

    @property
    def ptx(self) -> str:
        return self.texts["ptx"]

    @property
    def loads(self) -> Counter[int]:
        """The number of load instructions by bytes per thread: {16: 2, 4: 1}."""
        return load_widths(self.ptx)

    @property
    def asynchronous_copies(self) -> Counter[int]:
        """The same for asynchronous copies from global to shared memory."""
        return asynchronous_bytes(self.ptx)

    def lines(self, stage: str) -> list[Line]:
        """Return the lines of a stage without debug information, each with its line of the kernel, counted from 1."""
        if stage == "ast":
            return _tree(ast.parse(textwrap.dedent(self.python)), 0, None)
        found = {"llir": _llir, "ptx": _ptx, "sass": _sass}.get(stage, _mlir)(self.texts[stage])
        last = len(self.python.splitlines())
        numbers = (None if line.python is None else line.python - self.first_line + 1 for line in found)
        known = (number if number is not None and 1 <= number <= last else None for number in numbers)
        return [Line(line.text, number) for line, number in zip(found, known, strict=True)]

    def facts(self) -> list[tuple[str, str]]:
        """Return the SM resources it uses and the widths of its loads, as (name, value)."""
        loads = [f"{n} × {plural(width, 'byte')}" for width, n in sorted(self.loads.items(), reverse=True)]
        copies = [
            f"{n} × {plural(width, 'byte')}" for width, n in sorted(self.asynchronous_copies.items(), reverse=True)
        ]
        found = [
            ("GPU", f"sm_{self.capability} ({GENERATIONS.get(self.capability, 'another')})"),
            ("warps per program", str(self.num_warps)),
            ("registers per thread", str(self.registers)),
            ("spilled bytes per thread", str(self.stack_bytes)),
            ("shared memory per program, bytes", f"{self.shared_bytes:,}"),
            ("loads from global memory", ", ".join(loads) or "none"),
        ]
        return found + ([("copies to shared memory", ", ".join(copies))] if copies else [])

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self.facts())
        return "\n".join([self.name, *(f"  {name:<{width}}  {value}" for name, value in self.facts())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{escape(name)}</td><td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self.facts()
        )
        return f"<table><caption style='text-align:left'><code>{escape(self.name)}</code></caption>{rows}</table>"


def compile_kernel(kernel: Any, *arguments: Any, capability: int = 90, **options: Any) -> Compiled:
    """Compile `kernel` as the launch `kernel[grid](*arguments, **options)` would, for a GPU of this capability.

    Tensors may be on any device: only their types and alignment are used, not their data. Nothing runs.

    Raises:
        CompileFailed: the kernel does not compile; the message is the compiler's.
    """
    function = _function(kernel)
    named = dict(zip(inspect.signature(function).parameters, arguments, strict=False)) | options
    return _compiled(function, {name: described(value) for name, value in named.items()}, capability)


def _compiled(function: Any, told: dict[str, Any], capability: int) -> Compiled:
    """Compile the kernel for arguments in the form that `described` returns."""
    source = inspect.getsource(function).rstrip()
    before = _HEAD + "".join(f"{text}\n\n" for text in _needed(function))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.py")
        path.write_text(before + source + "\n", encoding="utf-8")
        return compiled_file(path, function.__name__, told, capability, source, before.count("\n") + 1)


def compiled_file(
    path: Path, name: str, told: dict[str, Any], capability: int = 90, python: str = "", first_line: int = 1
) -> Compiled:
    """Compile a kernel of a file for arguments in the form that `described` returns. Its folder must be writable.

    Raises:
        CompileFailed: the kernel does not compile; the message is the compiler's.
    """
    answer = _COMPILER.compile(path, name, told, capability, extras=True)
    texts = {stage: answer[stage] for stage in ("ttir", "ttgir", "llir", "ptx")}
    cubin = Path(answer["cubin"]).read_bytes()
    texts["sass"] = disassembled(cubin, "nvdisasm", "-g", "-c")
    used = re.search(r"REG:(\d+) STACK:(\d+)", disassembled(cubin, "cuobjdump", "-res-usage"))
    assert used is not None
    registers, stack_bytes = map(int, used.groups())
    return Compiled(
        name, capability, python, texts, answer["allocated"], answer["num_warps"], registers, stack_bytes,
        answer["shared_bytes"], first_line,
    )  # fmt: skip


def _function(kernel: Any) -> Any:
    while hasattr(kernel, "fn"):
        kernel = kernel.fn
    return inspect.unwrap(kernel)


def _needed(function: Any, known: set[str] | None = None) -> list[str]:
    """Return the definitions outside the kernel that it refers to: other kernels and constants."""
    known = {function.__name__} if known is None else known
    texts: list[str] = []
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if name in known or value is None:
            continue
        if hasattr(value, "fn") and callable(getattr(value, "fn", None)):
            known.add(name)
            inner = _function(value)
            texts += [*_needed(inner, known), inspect.getsource(inner).rstrip()]
        elif isinstance(value, bool | int | float) or type(value).__name__ == "constexpr":
            known.add(name)
            texts.append(f"{name} = tl.constexpr({getattr(value, 'value', value)!r})")
    return texts


def _tree(node: ast.AST, depth: int, python: int | None) -> list[Line]:
    """Return one line per node, indented by depth, with the node's own fields."""
    python = getattr(node, "lineno", python)
    said = " ".join(
        f"{name}={value!r}"
        for name, value in ast.iter_fields(node)
        if isinstance(value, str | int | float) and name != "type_comment"
    )
    lines = [] if isinstance(node, ast.Module | ast.Load | ast.Store) else [
        Line(f"{'  ' * depth}{type(node).__name__} {said}".rstrip(), python)
    ]  # fmt: skip
    inner = depth + bool(lines)
    return lines + [line for child in ast.iter_child_nodes(node) for line in _tree(child, inner, python)]


def _mlir(text: str) -> list[Line]:
    """Each operation ends in `loc(#loc7)`; the end of the text defines #loc7, perhaps through other locations."""
    places = {found[1]: found[2] for line in text.splitlines() if (found := _LOCATION.match(line))}

    def line_of(name: str, depth: int = 0) -> int | None:
        place = places.get(name, "")
        if found := _AT.search(place):
            return int(found[1])
        inner = re.search(r"#(loc\d*)", place)
        return line_of(inner[1], depth + 1) if inner and depth < 20 else None

    lines = []
    for line in text.splitlines():
        if not line.startswith("#loc"):
            used = _USED.search(line)
            lines.append(Line(re.sub(r" loc\(\"?\w*\"?\(?#loc\d*\)?\)", "", line), line_of(used[1]) if used else None))
    return lines


def _llir(text: str) -> list[Line]:
    places = {found[1]: int(found[2]) for line in text.splitlines() if (found := _DEBUG_LINE.match(line))}
    lines = []
    for line in text.splitlines():
        if line.startswith(("!", "; Function Attrs", "attributes", "source_filename")):
            continue
        used = _DEBUG.search(line)
        lines.append(Line(re.sub(r"(, )?!dbg !\d+", "", line).rstrip(), places.get(used[1]) if used else None))
    return _squeezed(lines)


def _ptx(text: str) -> list[Line]:
    lines: list[Line] = []
    current: int | None = None
    for line in text.splitlines():
        if line.lstrip().startswith(".section") or line.startswith("\t.file"):
            break  # tables for a debugger follow
        if found := _PTX_LINE.match(line):
            current = int(found[1])
        elif not re.match(r"\s*(\$L__tmp\d+:|\$L__func_\w+:|//.*)?$", line):
            is_code = re.match(r"\s+(@|[a-z{}])", line) is not None
            lines.append(Line(line.expandtabs(4), current if is_code else None))
    return lines


def _sass(text: str) -> list[Line]:
    lines: list[Line] = []
    current: int | None = None
    for line in text.splitlines():
        if found := _SASS_LINE.match(line):
            current = int(found[1])
        elif code := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*(?:/\*.*)?$", line):
            lines.append(Line(f"{code[1]}  {code[2]}", current))
        elif re.match(r"\.L_\w+:", line):
            lines.append(Line(line))
        elif lines and line.startswith("//----"):
            break
    while lines and re.search(r"  NOP$|^\.L_", lines[-1].text):
        lines.pop()  # padding to 128 bytes
    return lines or [Line(text)]


def _squeezed(lines: list[Line]) -> list[Line]:
    """Reduce runs of empty lines to one, and drop those at the ends."""
    kept = [line for at, line in enumerate(lines) if line.text.strip() or (at and lines[at - 1].text.strip())]
    while kept and not kept[-1].text.strip():
        kept.pop()
    return kept


_ACCESS = re.compile(r"(?:\.v(?P<count>\d+))?\.[bfus](?P<bits>\d+)\s")


def memory_instructions(
    kernel: Any, signature: dict[str, str], constants: dict[str, int], divisible_by_16: tuple[str, ...] = ()
) -> dict[str, int]:
    """Compile `kernel` for an H100 and count its loads and stores by bytes per thread and instruction.

    Args:
        kernel: a `@triton.jit` function.
        signature: the type of each argument, e.g. `{"x_ptr": "*fp32", "n": "i32"}`.
        constants: the values of the `tl.constexpr` arguments.
        divisible_by_16: the arguments that the compiler may assume divisible by 16. Triton checks this at each launch.

    Raises:
        RuntimeError: the kernel does not compile; the message is the compiler's last line.
    """
    ptx = _ptx_of(kernel, signature, constants, divisible_by_16)
    counts: Counter[str] = Counter()
    for line in ptx.splitlines():
        for short, word in (("ld.global", "load"), ("st.global", "store")):
            if short in line:
                counts[f"{word} of {plural(_width(line), 'byte')}"] += 1
    return dict(counts)


def count_instructions(
    kernel: Any, signature: dict[str, str], constants: dict[str, int], names: tuple[str, ...],
    divisible_by_16: tuple[str, ...] = (),
) -> dict[str, int]:  # fmt: skip
    """Compile `kernel` as `memory_instructions` does, and count the PTX instructions whose name begins with each name.

    Raises:
        RuntimeError: the kernel does not compile; the message is the compiler's last line.
    """
    lines = _ptx_of(kernel, signature, constants, divisible_by_16).splitlines()
    found = [re.sub(r"^@!?%\w+\s+", "", line.strip()) for line in lines]
    return {name: sum(line.startswith(name) for line in found) for name in names}


def _ptx_of(kernel: Any, signature: dict[str, str], constants: dict[str, int], divisible: tuple[str, ...]) -> str:
    """Return the PTX for arguments of these types. Integers divisible by 16 are compiled as 16, others as 17."""
    told: dict[str, Any] = {name: {"value": value} for name, value in constants.items()}
    for name, kind in signature.items():
        aligned = name in divisible
        dtype = kind.removeprefix("*").replace("bf", "bfloat").replace("fp", "float").replace("i", "int")
        told[name] = {"tensor": dtype, "aligned": aligned} if kind.startswith("*") else {"value": 16 + (not aligned)}
    return _compiled(_function(kernel), told, 90).ptx


def _width(line: str) -> int:
    match = _ACCESS.search(line)
    if match is None:
        raise RuntimeError(f"Memory instruction of an unknown form: {line.strip()}")
    return int(match["count"] or 1) * int(match["bits"]) // 8


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
class CompilerView(Interactive):
    """A kernel's Python source above two of its stages. In JupyterLab the stages and the GPU can be chosen.

    The number before a line is the line of Python it comes from. Pointing at a line highlights all related lines.
    An exported page or a terminal shows the first GPU and stages.
    """

    compile: Callable[[int], Compiled]
    capability: int
    stages: tuple[str, str] = _SHOWN
    _known: dict[int, Compiled] = field(default_factory=dict, repr=False)

    def compiled(self, capability: int | None = None) -> Compiled:
        """Return the kernel, compiled once per GPU."""
        wanted = self.capability if capability is None else capability
        if wanted not in self._known:
            self._known[wanted] = self.compile(wanted)
        return self._known[wanted]

    def page(self, capability: int | None = None, stages: tuple[str, str] | None = None) -> str:
        """Return the HTML: Python, the two stages side by side, and below them the kernel's resources."""
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
        """Return a new widget: controls above the page. Raises ImportError without ipywidgets."""
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

    def _still_html(self) -> str:
        return self.page()


def explore_compiler(kernel: Any, *arguments: Any, capability: int = 90, **options: Any) -> CompilerView:
    """Show the code compiled for the launch `kernel[grid](*arguments, **options)`. It needs no GPU and runs nothing.

    Args:
        kernel: a `@triton.jit` function.
        arguments: those of the launch; only the type and the alignment of a tensor are used.
        capability: the GPU to show first, 90 for an H100 or H200.
        options: keyword arguments, and options such as `num_warps`.

    Raises:
        CompileFailed: the kernel does not compile; the message is the compiler's.
    """
    view = CompilerView(lambda wanted: compile_kernel(kernel, *arguments, capability=wanted, **options), capability)
    view.compiled()
    return view


def _page(compiled: Compiled, stages: tuple[str, str]) -> str:
    """Return the HTML, with related lines in one class. A notebook may show several pages, so each has its own id."""
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
    panes = [_pane("Python, and the number of lines compiled from each", numbered, notes, " python")]
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
