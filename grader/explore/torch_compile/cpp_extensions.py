"""Extending PyTorch in C++: the files that load_inline writes, and the registered parts of a custom operator."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from grader.explore.drawing.displays import BLUE, DARK, GREY, PALE, Picture, canvas, code_html, finish, rectangle, write
from grader.words import plural

# load_inline itself, in a separate process, without the two steps that compile and import.
_WRITE_ONLY = """
import json, os, sys
from torch.utils import cpp_extension

job = json.loads(sys.argv[1])
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or "/usr/local/cuda"
cpp_extension._run_ninja_build = lambda *arguments, **options: None
cpp_extension._import_module_from_library = lambda *arguments, **options: None
cpp_extension.load_inline("demo", build_directory=sys.argv[2], **job)
"""


@dataclass(frozen=True)
class BuildFiles:
    """The files of a build by name; in a notebook each can be expanded."""

    files: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.files[name]

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return "\n\n".join(f"=== {name}\n{text}" for name, text in self.files.items())

    def _repr_html_(self) -> str:
        style = "font-size:13px; white-space:pre-wrap; margin:4px 0 10px 1em"
        return "".join(
            f"<details{'' if name.endswith('.ninja') else ' open'}>"
            f"<summary><b>{escape(name)}</b>, {plural(len(text.splitlines()), 'line')}</summary>"
            f"{code_html(text, style)}</details>"
            for name, text in self.files.items()
        )


def show_build_files(
    cuda_source: str, functions: list[str] | None = None, cpp_source: str = "", *, torch_headers: bool = True
) -> BuildFiles:
    """Return the files that `load_inline` writes for this source. Nothing is compiled; no GPU or compiler is needed.

    Args:
        cuda_source: the argument `cuda_sources` of `load_inline`.
        functions: the names to bind for Python, or None.
        cpp_source: the argument `cpp_sources`: the declarations of those functions.
        torch_headers: False for `no_implicit_headers=True`.

    Raises:
        RuntimeError: `load_inline` failed; the message is its last line.
    """
    job = {
        "cpp_sources": [cpp_source],
        "cuda_sources": [cuda_source],
        "functions": functions,
        "no_implicit_headers": not torch_headers,
        "is_python_module": functions is not None,
    }
    with tempfile.TemporaryDirectory(prefix="load_inline_") as folder:
        command = [sys.executable, "-c", _WRITE_ONLY, json.dumps(job), folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"load_inline wrote nothing: {last}")
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix in (".cpp", ".cu", ".ninja"))
        order = {".cu": 0, ".cpp": 1, ".ninja": 2}
        paths.sort(key=lambda path: order[path.suffix])
        return BuildFiles({path.name: _shortened(path.read_text(encoding="utf-8"), folder) for path in paths})


def _shortened(text: str, folder: str) -> str:
    """Return the text with absolute paths shortened and runs of empty lines reduced to one."""
    paths = sysconfig.get_paths()
    for path, name in ((folder, "…"), (paths["purelib"], "…/site-packages"), (paths["include"], "…/include/python")):
        text = text.replace(path, name)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def lines_after_includes(source: str) -> int | None:
    """Count the lines of code that a C++ compiler reads for `source` after preprocessing. None without a compiler.

    The headers of torch and Python are on the include path. Empty lines and the preprocessor's markers are not counted.

    Raises:
        RuntimeError: preprocessing failed; the message is the first error.
    """
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return None
    from torch.utils.cpp_extension import include_paths

    folders = [*include_paths(), sysconfig.get_paths()["include"]]
    command = [compiler, "-E", "-std=c++20", "-x", "c++", "-", *(f"-I{folder}" for folder in folders)]
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        raise RuntimeError(f"Preprocessing failed: {first}")
    return sum(1 for line in done.stdout.splitlines() if line.strip() and not line.startswith("#"))


_PARTS = (  # caller, part, what the part returns
    ("a call", "kernel", "the values"),
    ("torch.compile", "fake", "shape, type, strides"),
    ("backward()", "gradient", "the inputs' gradients"),
)
_ROW = 1.1
_MOST_LETTERS = 58


def registered(operator: Any) -> dict[str, bool]:
    """Return whether "kernel", "fake" and "gradient" are registered for a `torch.library.custom_op` operator.

    Raises:
        TypeError: `operator` is not a custom operator.
    """
    from torch._library.custom_ops import CustomOpDef

    if not isinstance(operator, CustomOpDef):
        raise TypeError(f"This needs an operator from `torch.library.custom_op`, not {type(operator).__name__}.")
    found: Any = operator  # the registrations are in private attributes of torch
    return {
        "kernel": bool(found._backend_fns),
        "fake": found._abstract_fn is not None,
        "gradient": found._backward_fn is not None,
    }


def draw_operator(operator: Any) -> Picture:
    """Draw the registered and the missing parts of an operator, and what uses each.

    Raises:
        TypeError: `operator` was not returned by `torch.library.custom_op`.
    """
    there = registered(operator)
    schema = str(operator._opoverload._schema)
    figure, axes = canvas(7.2, 3.1, (0, 7.2), (4.3, 0))
    rectangle(axes, (2.15, 0.1), 4.95, 4.1, facecolor="none", edgecolor=BLUE, linewidth=2.2)
    size = min(9.5, 9.5 * _MOST_LETTERS / len(schema))  # to stay within the frame
    write(axes, 4.62, 0.5, schema, size, family="monospace")
    for row, (asks, part, answer) in enumerate(_PARTS):
        top = 0.95 + row * _ROW
        box = rectangle(
            axes, (2.4, top), 1.7, 0.8, facecolor=PALE if there[part] else "white", edgecolor=DARK, linewidth=1.4
        )
        if not there[part]:
            box.set(hatch="////", linestyle="--", edgecolor=GREY)
        behind = None if there[part] else {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        write(axes, 3.25, top + 0.4, part, 12, bbox=behind)
        write(axes, 1.25, top + 0.4, asks, 11, "right")
        style = {"arrowstyle": "-|>", "color": DARK, "linewidth": 1.4, "linestyle": "-" if there[part] else "--"}
        axes.annotate("", (2.38, top + 0.4), (1.35, top + 0.4), arrowprops=style)
        says = f"returns: {answer}" if there[part] else "not registered"
        write(axes, 4.3, top + 0.4, says, 11, "left")
    missing = [part for part in there if not there[part]]
    alt = f"The operator {schema}. A call uses the kernel, torch.compile the fake, and backward() the gradient. " + (
        f"Not registered, and hatched: {' and '.join(missing)}." if missing else "All three are registered."
    )
    return finish(figure, alt, width=680)
