"""Kernels: does the source compile and launch one, and which kernels ran?

A string counts as a kernel if it reaches a call that compiles it; comments in it are ignored, and so are scopes.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from grader.exercise import Exercise
from grader.judge.rules.names import Names, is_jit, is_kernel, operation, text, words
from grader.judge.rules.notes import Note, findings, shown
from grader.verdict import Finding

# The kernels that ran. Their names come from the worker, so they are untrusted.

_MOST_ROWS = 64
_MOST_MICROSECONDS = 1e9
_MOST_CHARACTERS = 400
_NOTABLE = 0.3  # of the time of all kernels

_LIBRARY = re.compile(
    r"""^(at|at_cuda_detail|c10|cublas|cublasLt|cutlass|cudnn)::        # torch's own, and the libraries it ships
    | ^(pytorch_flash:: | fmha_cutlass[FB]_ | cudnn_generated_)         # of scaled_dot_product_attention
    | ^(thrust|cub)::.*\bat::native\b | \bcublas[A-Z]\w*< | ^nvjet_ | ^cutlass_\d | \bcask_cudnn
    | ^sm\d+_xmma_ | ^(ampere|volta|turing|maxwell)_\w*gemm
    | ^\(anonymous\snamespace\)::softmax_warp_(for|back)ward<
    | ^triton_(poi|per|red|tem|for)_fused_ | ^cupy_\w+__""",  # what torch.compile and CuPy write
    re.VERBOSE,
)
_COPIES = re.compile(r"FillFunctor|direct_copy_kernel|CatArray|^cupy_(copy|fill)__")  # of the library


class _Row(NamedTuple):
    name: str
    microseconds: float


def of_kernels(rows: Any, exercise: Exercise) -> tuple[Finding, ...]:
    """Findings about the kernels that ran in one call, given as `{"name", "count", "microseconds"}` each.

    Malformed rows are ignored. Without rows there are no findings: the profiler may not work on this machine.
    """
    valid = [row for row in map(_valid, rows[:_MOST_ROWS] if isinstance(rows, list) else []) if row]
    simulated = [row.name for row in valid if row.name.startswith("aten::")]
    notes = [
        Note("simulated library", subject=shown(name))
        for name in simulated
        if operation(name.removeprefix("aten::").partition(".")[0]) in exercise.rules.library
    ]
    ran = [row for row in valid if not row.name.startswith("aten::")]
    if exercise.backend != "torch":  # which requires no kernel
        notes += _on_gpu(ran)
    return findings(notes, exercise)


def _on_gpu(rows: list[_Row]) -> list[Note]:
    if not rows:
        return []
    longest = max(rows, key=lambda row: row.microseconds)
    library = [row for row in rows if _LIBRARY.search(row.name)]
    copies = [row for row in rows if row.name.startswith(("Memcpy", "Memset"))]
    copies += [row for row in library if _COPIES.search(row.name)]
    kernels = [row for row in rows if row not in copies]
    if not kernels:
        return [Note("ran no kernel", subject=shown(longest.name))]
    library = [row for row in library if row not in copies]
    total, of_library = (sum(row.microseconds for row in some) for some in (kernels, library))
    share = of_library / total if total else len(library) / len(kernels)
    if share < _NOTABLE:
        return []
    longest = max(library, key=lambda row: row.microseconds)
    return [Note("ran library", subject=shown(longest.name), share=share)]


def _valid(row: Any) -> _Row | None:
    if not isinstance(row, dict):
        return None
    name, microseconds = row.get("name"), row.get("microseconds")
    if not isinstance(name, str) or not name or isinstance(microseconds, bool):
        return None
    if not isinstance(microseconds, int | float) or not 0 <= microseconds <= _MOST_MICROSECONDS:
        return None
    return _Row(name[:_MOST_CHARACTERS].removeprefix("void "), float(microseconds))


# Calls that compile a string: which argument holds it, by position and by name. None: any of them.
_TEXTS: dict[str, tuple[int | None, frozenset[str]]] = {
    "load_inline": (2, words("cuda_sources")), "RawKernel": (0, words("code")), "RawModule": (0, words("code path")),
    "_compile_kernel": (0, words("kernel_source")), "SourceModule": (0, words("source")), "Program": (0, words("code")),
    "nvrtcCreateProgram": (None, frozenset()), "cuModuleLoadData": (None, frozenset()),
    "cuModuleLoadDataEx": (None, frozenset()), "cuLibraryLoadData": (None, frozenset()),
}  # fmt: skip
_ELEMENTWISE = words("ElementwiseKernel ReductionKernel create_jit_fn create_multi_output_jit_fn _create_jit_fn")
_LOAD = "cpp_extension.load"
_COMMANDS = re.compile(r"subprocess\.\w+|os\.(system|popen)")
_READS = words("open read_text read_bytes path")
_WRITES = words("write write_text write_bytes writelines")
_SPLICED = re.compile(r"^(?:[^\n]*\\\r?\n)+[^\n]*", re.MULTILINE)
_SPLICE = re.compile(r"\\\r?\n")
_COMMENT = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|'(?:\\.|[^'\\\n])'"
    r'|"(?:\\.|[^"\\\n])*"?',  # an unclosed quote ends with its line
    re.DOTALL,
)
_KERNEL = re.compile(r"__global__[^;{}]*\{|\.entry\b")
_MOST_COMPILED = 24


def missing(names: Names, exercise: Exercise) -> Iterator[Note]:
    """Note a missing kernel, or a kernel that is never launched."""
    flow = _Flow(names)
    triton = [node for node in ast.walk(names.module) if isinstance(node, ast.FunctionDef) and is_kernel(names, node)]
    compiled = list(flow.compiling())[:_MOST_COMPILED]
    whole = [call for call in compiled if flow.has_kernel(call)]
    reached = flow.reached(exercise.entry)
    if any(call in reached for call in whole):
        return
    if any(kernel in reached for kernel in triton) and _launches(reached):
        return
    if triton:
        yield Note("not launched", triton[0].lineno, shown(triton[0].name))
    elif whole:
        yield Note("not launched", whole[0].lineno, shown(_last(names, whole[0])))
    elif compiled:
        yield Note("no kernel in C++", compiled[0].lineno)
    else:
        yield Note("no kernel")


def without_comments(code: str) -> str:
    """C++ without comments and quoted strings; line numbers stay. Lines ending in a backslash are joined, as in C."""
    code = _SPLICED.sub(lambda found: _SPLICE.sub("", found[0]) + "\n" * found[0].count("\n"), code)
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n") + " ", code)


class _Flow:
    """Records which expressions may reach which names."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._links: dict[str, set[ast.AST]] = defaultdict(set)
        self._bare: set[ast.AST] = set()
        self._written: list[ast.AST] = []
        for node in ast.walk(names.module):
            self._link(node)

    def _link(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._into([node.name], node)
                for name in (name for each in node.decorator_list for name in _mentioned(each)):
                    self._links[name].add(node)  # it may register the function
                for decorator in node.decorator_list:
                    self._arguments(ast.Call(decorator, [node], []))  # type: ignore[list-item]
                if not isinstance(node, ast.ClassDef):
                    defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each]
                    for argument in (*node.args.args, *node.args.kwonlyargs) if defaults else ():
                        self._links[argument.arg].update(defaults)
            case ast.Assign(targets=targets, value=value):
                self._into((name for target in targets for name in _mentioned(target)), value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                self._into(_mentioned(target), value)
            case ast.NamedExpr(target=target, value=value) | ast.For(target=target, iter=value):
                self._into(_mentioned(target), value)
            case ast.comprehension(target=target, iter=value):
                self._into(_mentioned(target), value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._into(_mentioned(target), value)
            case ast.Expr(value=ast.Constant() as bare):
                self._bare.add(bare)
            case ast.Expr(value=ast.Call(func=func) as call):
                self._into(_mentioned(func), call)
        if isinstance(node, ast.Call):
            self._arguments(node)

    def _arguments(self, node: ast.Call) -> None:
        function = self.names.top.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if isinstance(function, ast.FunctionDef):
            for argument, value in zip(function.args.args, node.args, strict=False):
                self._links[argument.arg].add(value)
            for keyword in node.keywords:
                self._links[keyword.arg or ""].add(keyword.value)
        if _last(self.names, node) in _WRITES:
            self._written += node.args

    def _into(self, targets: Iterable[str], value: ast.AST) -> None:
        for name in targets:
            self._links[name].add(value)

    def compiling(self) -> Iterator[ast.Call]:
        """Calls that compile something for the GPU. Only the first few commands are examined."""
        commands = 0
        for node in ast.walk(self.names.module):
            if not isinstance(node, ast.Call) or self._is_own(node.func):
                continue
            last, dotted = _last(self.names, node), self.names.dotted(node.func)
            if last in _TEXTS or last in _ELEMENTWISE or is_jit(self.names, node.func) or dotted.endswith(_LOAD):
                yield node
            elif _COMMANDS.fullmatch(dotted) and commands < _MOST_COMPILED:
                commands += 1
                if self._is_nvcc(node):
                    yield node

    def _is_own(self, function: ast.expr) -> bool:
        return isinstance(function, ast.Name) and function.id in self.names.top.keys() - self.names.imports.keys()

    def _is_nvcc(self, node: ast.Call) -> bool:
        command = self._texts(self._closure(node.args[:1]))
        return any(word.rpartition("/")[2] == "nvcc" for word in command.split())

    def has_kernel(self, node: ast.Call) -> bool:
        """Whether a kernel's text reaches the call, or the call reads a file, whose content is unknown here."""
        last = _last(self.names, node)
        if last in _ELEMENTWISE or is_jit(self.names, node.func):
            return True
        sources: list[ast.AST] = self._written or [node]
        if last in _TEXTS:
            place, named = _TEXTS[last]
            sources = [*(node.args if place is None else node.args[place : place + 1])]
            sources += [each.value for each in node.keywords if each.arg in named or place is None]
            if not sources:  # they may be in `*args` or `**keywords`
                sources += [each.value for each in node.keywords if each.arg is None]
                sources += [each for each in node.args if isinstance(each, ast.Starred)]
        closure = self._closure(sources)
        names = {name for each in closure for name in _own(each)}
        if names & _READS or any(each.arg == "path" for each in node.keywords):
            return True
        return _KERNEL.search(without_comments(self._texts(closure))) is not None

    def reached(self, entry: str) -> set[ast.AST]:
        """Every node that the function and the module's own statements may reach."""
        top = [each for each in self.names.module.body if isinstance(each, ast.Expr | ast.If | ast.With | ast.Try)]
        return self._closure([ast.Name(entry), *top])

    def _closure(self, start: Iterable[ast.AST]) -> set[ast.AST]:
        """Every node inside these nodes, and inside the expressions that reach the names they mention."""
        found: set[ast.AST] = set()
        waiting, known = list(start), set[str]()
        while waiting:
            for node in ast.walk(waiting.pop()):
                if node in found:
                    continue
                found.add(node)
                for name in _own(node):
                    if name not in known:
                        known.add(name)
                        waiting += self._links.get(name, set()) - found
        return found

    def _texts(self, nodes: Iterable[ast.AST]) -> str:
        """The strings among the nodes, in source order, without docstrings and other bare strings."""
        texts = [
            (node.lineno, node.col_offset, node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and node not in self._bare
        ]
        return " ".join(value for _, _, value in sorted(texts))


def _own(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Constant(value=str(name)) if name.isidentifier():  # getattr(…, "kernel")
            yield name


def _mentioned(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        yield from _own(inner)


def _last(names: Names, node: ast.Call) -> str:
    """The last part of the called name."""
    dotted = names.dotted(node.func)
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    if isinstance(node.func, ast.Call) and dotted == "":
        return text(node.func.args[1]) if len(node.func.args) > 1 else ""
    return dotted.rpartition(".")[2] or (node.func.id if isinstance(node.func, ast.Name) else "")


def _launches(nodes: Iterable[ast.AST]) -> bool:
    """Whether the nodes contain a launch: `kernel[grid]`, or a launching method such as `run`."""
    return any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) for node in nodes) or any(
        isinstance(node, ast.Attribute) and node.attr in ("run", "forall", "configure", "warmup") for node in nodes
    )
