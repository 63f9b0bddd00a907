"""The rules of an exercise, as notes for a person: write the kernel yourself, and let the library be.

Advice, never points: a source can be written so that none of this sees it. What is doubtful is not noted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from grader.definitions import parsed
from grader.exercise import Exercise
from grader.judge.rules.flow import follow
from grader.judge.rules.kernels import of_kernels
from grader.judge.rules.names import Names, words
from grader.judge.rules.notes import Note, findings, shown
from grader.judge.rules.reach import beyond
from grader.judge.rules.torch_names import is_kernel
from grader.verdict import Finding

__all__ = ["of_kernels", "of_source"]

# What makes a kernel of one's own, of whichever kind: a solution in another language than the chapter's is a solution.
_MAKES_KERNELS = words(
    """load_inline RawKernel RawModule ElementwiseKernel ReductionKernel _compile_kernel SourceModule nvrtcCreateProgram
    jiterator rawkernel JITFunction"""
)
_KERNEL_TEXT = re.compile(r"__global__|\.entry\b")
_DEVICE_TEXT = re.compile(r"__global__|__device__|thrust::|cub::|#\s*include\s*\"")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


def of_source(source: str, exercise: Exercise) -> tuple[Finding, ...]:
    """What a person should know of a submission's text, in the order of its lines.

    A source that is no Python has none: the judge says so itself.
    """
    try:
        module = parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    try:
        names = Names(module)
        notes = list(beyond(names))
        if exercise.backend == "torch":  # it asks for no kernel: there, what is forbidden is all that matters
            notes += [note for note in follow(names, exercise) if note.rule in ("library", "fallback")]
        else:
            notes += [*_kernels(names, exercise), *follow(names, exercise), *_cpp(names, exercise)]
    except Exception:  # hostile text: whatever it does to the reading, grading goes on, and a person is told
        notes = [Note("unread")]
    return findings(notes, exercise)


def _kernels(names: Names, exercise: Exercise) -> Iterator[Note]:
    """Whether there is a kernel, and whether the function can come to it."""
    kernels: list[ast.FunctionDef] = []
    makes, compiles = False, bool(names.stars)
    for node in ast.walk(names.module):
        match node:
            case ast.FunctionDef() if is_kernel(names, node):
                kernels.append(node)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in _MAKES_KERNELS:
                makes = True
            case ast.Constant(value=str(value)) if _KERNEL_TEXT.search(value):
                makes = True
            case ast.Name() | ast.Attribute():
                dotted = names.dotted(node)
                compiles = compiles or (dotted.endswith((".jit", "cpp_extension.load")) and dotted != "torch.jit")
    if makes:
        return
    if kernels and names.reachable(exercise.entry).isdisjoint(kernel.name for kernel in kernels):
        yield Note("not launched", kernels[0].lineno, shown(kernels[0].name))
    elif not kernels and not compiles:
        yield Note("no kernel")


def _cpp(names: Names, exercise: Exercise) -> Iterator[Note]:
    """What the C++ in a submission's texts calls, and whether it has a kernel."""
    builds, device = None, False
    forbidden = "|".join(map(re.escape, exercise.rules.library))
    call = re.compile(rf"\b(?:at|torch)::(?:{forbidden})(?:_out|_)?(?=\s*\()") if forbidden else None
    for node in ast.walk(names.module):
        match node:
            case ast.Constant(value=str(value)):
                device = device or bool(_DEVICE_TEXT.search(value))
                code = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), value)
                for found in call.finditer(code) if call and "{" in code else ():
                    in_text = code.count("\n", 0, found.start()) if _over_lines(node, value) else 0
                    yield Note("library", node.lineno + in_text, shown(found[0]))
            case ast.Call(func=func) if names.dotted(func).endswith("cpp_extension.load_inline"):
                builds = node
            case ast.Name(id="open") | ast.Attribute(attr="read_text") | ast.FunctionDef(decorator_list=[_, *_]):
                device = True  # the text may come from there, or the kernel is another
    if builds is not None and not device:
        yield Note("no kernel in C++", builds.lineno)


def _over_lines(node: ast.Constant, value: str) -> bool:
    """Whether a text's lines are lines of the source, and not written as `\\n`."""
    return (node.end_lineno or node.lineno) - node.lineno == value.count("\n")
