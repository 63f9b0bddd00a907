"""Call a function as one compiled graph, and count the kernels that it is fused into.

A submission shares this process, so it can falsify all of these results.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from math import prod
from typing import Any, NoReturn

import torch
import torch._dynamo.config as settings
import torch._functorch.config as autograd_settings
import torch._inductor.config as inductor_settings

from grader.worker.outputs import must_be_like
from grader.worker.toolchain import forked

# Bound here, before there is a submission, which could replace them in their modules.
_compile = torch.compile
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torch's own
    from torch._inductor.compile_fx import compile_fx


KernelCount = int | None  # None: this version of PyTorch has no hook after fusion
_HOOK = "_post_fusion_custom_pass"
_HAS_HOOK = hasattr(inductor_settings, _HOOK)


class _Fused(Exception):
    """Fusion is done, and nothing more is needed."""


def can_count() -> bool:
    """Return whether this version of PyTorch has the private hook that counting needs."""
    return _HAS_HOOK


def count_only(graph: Any, inputs: Any) -> KernelCount:
    """Return how many kernels `graph`, an FX GraphModule, is fused into, without generating code or changing it."""
    if not can_count():
        return None
    counts: list[int] = []
    try:
        _compile_with_hook(copy.deepcopy(graph), inputs, counts, stop=True)
    except Exception:
        if not counts:  # it failed before fusion
            raise
    return sum(counts)


def compile_and_count(graph: Any, inputs: Any) -> tuple[Callable[..., Any], KernelCount]:
    """Compile the graph with Inductor as `torch.compile` does, and count the kernels that it is fused into."""
    if not can_count():
        return compile_fx(graph, inputs), None  # type: ignore[return-value]
    counts: list[int] = []
    compiled = _compile_with_hook(graph, inputs, counts, stop=False)
    return compiled, sum(counts)


def _compile_with_hook(graph: Any, inputs: Any, counts: list[int], stop: bool) -> Any:
    """Compile without the caches, because the scheduler does not run for a cached graph."""

    def count(nodes: Any) -> Any:
        # A "Nop…" only names memory or reads a number on the host.
        counts.append(sum(not type(node).__name__.startswith("Nop") for node in nodes))
        if stop:
            raise _Fused
        return nodes

    with (
        inductor_settings.patch({"fx_graph_cache": False, _HOOK: count}),
        autograd_settings.patch({"enable_autograd_cache": False}),
    ):
        return compile_fx(graph, inputs)


_HOST = ("cpu", "item", "numpy", "tolist")  # methods of a tensor whose result is on the host
_SHAPES = 64  # compilations, one per shape
_SPECIAL = {  # functions of many instructions each
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1", "log",
    "log10", "log1p", "log2", "pow", "sigmoid", "sin", "sinh", "tan", "tanh",
}  # fmt: skip


class GraphBreak(RuntimeError):
    """Dynamo cannot trace a line, so there would be more than one graph."""


class InputChanged(RuntimeError):
    """The function wrote to a tensor that it was given."""


class NothingFused(RuntimeError):
    """No graph was captured, or no kernel of it was counted."""


class Recompiled(RuntimeError):
    """A second call with the same shapes was compiled again."""


class TooManyKernels(RuntimeError):
    """The graph was fused into more kernels than are allowed."""


class TripToTheCpu(RuntimeError):
    """The graph fetches values to the host."""


class WholeGraph:
    """`entry` under `torch.compile(fullgraph=True, dynamic=False)`, checked once per shape.

    On CUDA tensors Inductor compiles the graph. On the CPU Inductor only fuses it, which gives the number of kernels,
    and PyTorch runs the captured graph: a C++ compiler would take longer than everything else.
    """

    def __init__(self, entry: Callable[..., Any], most_kernels: int) -> None:
        entry = getattr(entry, "_torchdynamo_orig_callable", entry)  # if torch.compile decorates it
        self.entry, self.most_kernels = entry, most_kernels
        self.kernels: KernelCount = None
        self.graphs = 0
        self._reported_uncounted = False
        self._known: set[tuple[Any, ...]] = set()
        self._fetched: list[tuple[str, int | None]] = []  # by the graph that was captured last
        for name in ("recompile_limit", "cache_size_limit"):  # older versions of PyTorch have the second
            if hasattr(settings, name):
                setattr(settings, name, _SHAPES)
        self._compiled = _compile(entry, fullgraph=True, dynamic=False, backend=self._backend)

    def __call__(self, out: Any, *arrays: Any) -> Any:
        """Return the compiled function's result for `arrays`, a tensor like `out`.

        It raises the exceptions above, `NotATensor`, and the function's own exceptions without compilation.
        """
        shapes = tuple(array.shape for array in arrays)
        if shapes not in self._known:
            self._check(out, arrays)
            self._known.add(shapes)
        graphs = self.graphs
        result = self._compiled(*arrays)
        if self.graphs > graphs:
            raise Recompiled("a second call with the same shapes was compiled again, because something else changed")
        return result

    def _check(self, out: Any, arrays: tuple[Any, ...]) -> None:
        """Call the function itself, whose errors are plain Python's, and the compiled one, both on copies."""
        copies = [array.clone() for array in arrays]
        before = [copy._version for copy in copies]
        must_be_like(out, self.entry(*copies))
        if before != [copy._version for copy in copies]:
            raise InputChanged("the function wrote to a tensor that it was given")
        self._fetched.clear()
        graphs = self.graphs
        try:
            self._compiled(*(array.clone() for array in arrays))
        except Exception as error:
            if not _is_break(error):
                raise
            raise_at(self.entry, _line_of(error, self.entry), GraphBreak(_break_reason(error)))
        for name, line in self._fetched:
            raise_at(self.entry, line, TripToTheCpu(f"the graph fetches a value to the CPU: `.{name}()`"))
        if self.graphs == graphs:
            raise NothingFused("torch.compile captured no graph: leave its settings as they are")
        if not can_count():
            self._report_uncounted()
        elif not self.kernels:
            raise NothingFused("the graph was fused into no kernel: nothing in it computes the result")
        elif self.kernels > self.most_kernels:
            raise TooManyKernels(f"fused into more kernels than allowed: {self.kernels}, at most {self.most_kernels}")

    def _report_uncounted(self) -> None:
        """Tell the learner's log once that the limit is not checked."""
        if not self._reported_uncounted:
            print(
                f"The grader did not count kernels: torch {torch.__version__} does not have the hook for it. "
                f"The limit of {self.most_kernels} was not checked.",
                flush=True,
            )
        self._reported_uncounted = True

    def _backend(self, graph: Any, inputs: Any) -> Callable[..., Any]:
        self.graphs += 1
        self._fetched[:] = _fetched(graph)
        forked.facts.append(_work_in(graph, inputs))
        self.kernels = None
        if self._fetched:  # `_check` raises for it, so nothing needs to be compiled
            return graph.forward  # type: ignore[no-any-return]
        if any(getattr(one, "is_cuda", False) for one in inputs):
            compiled, self.kernels = compile_and_count(graph, inputs)
            return compiled
        self.kernels = count_only(graph, inputs)
        return graph.forward  # type: ignore[no-any-return]


def raise_at(entry: Callable[..., Any], line: int | None, error: Exception) -> NoReturn:
    """Raise `error` as if that line of the file of `entry` raised it, so that a report can name the line."""
    code = getattr(entry, "__code__", None)
    if line is None or code is None:
        raise error from None
    error.__suppress_context__ = True
    exec(compile("\n" * (line - 1) + "raise error", code.co_filename, "exec"), {"error": error})
    raise error


def _fetched(graph: Any) -> list[tuple[str, int | None]]:
    """Return the operations of the graph that take a value to the host, each with its line."""
    found = [(_name(node), node) for node in graph.graph.nodes if node.op in ("call_method", "call_function")]
    return [
        (name, _last_line(node.stack_trace or ""))
        for name, node in found
        if name in _HOST or (name == "to" and "cpu" in (*node.args[1:], *node.kwargs.values()))
    ]


def _work_in(graph: Any, inputs: Any) -> dict[str, Any]:
    """Count what the graph does to each element: "special" functions, and results in "double" precision.

    Equal calls count once, as Inductor computes them once. Each count has the line of the first call.
    """
    most = max((each.numel() for each in inputs if isinstance(each, torch.Tensor)), default=0)
    special: dict[tuple[str, str], int | None] = {}
    double: list[int | None] = []
    for node in graph.graph.nodes:
        made = node.meta.get("example_value")
        if node.op not in ("call_method", "call_function") or not isinstance(made, torch.Tensor):
            continue
        name, full = _name(node), prod(map(int, made.shape)) >= most > 0
        if full and name.strip("_") in _SPECIAL and not _is_a_product(name, node):
            special.setdefault((name, f"{node.args} {node.kwargs}"), _last_line(node.stack_trace or ""))
        if full and made.dtype is torch.float64:
            double.append(_last_line(node.stack_trace or ""))
    names = ", ".join(dict.fromkeys(name for name, _ in special))
    counts = {"special": len(special), "special_line": next(iter(special.values()), None), "special_names": names}
    return {"captured": 1, **counts, "double_results": len(double), "double_line": next(iter(double), None)}


def _is_a_product(name: str, node: Any) -> bool:
    """Whether it is a power with a constant such as 2, which is computed by products, or a square root."""
    return name == "pow" and len(node.args) > 1 and node.args[1] in (-2, -1, -0.5, 0.5, 1, 2, 3, 4)


def _name(node: Any) -> str:
    return str(getattr(node.target, "__name__", node.target)).rpartition(".")[2]


def _is_break(error: Exception) -> bool:
    kind = type(error)
    return kind.__module__.startswith("torch._dynamo.exc") and kind.__name__ != "BackendCompilerFailed"


def _break_reason(error: Exception) -> str:
    """Return the title of Dynamo's message about a break, and the first line of its explanation."""
    text = str(error).strip()
    explanation = re.search(r"Explanation: (.+)", text)
    title = text.split("\n")[0]
    return f"{title}: {explanation[1]}" if explanation else title


def _line_of(error: Exception, entry: Callable[..., Any]) -> int | None:
    """Return the innermost line of the entry's file that Dynamo had reached."""
    file = getattr(getattr(entry, "__code__", None), "co_filename", None)
    found = [frame.lineno for frame in getattr(error, "real_stack", None) or () if frame.filename == file]
    return found[-1] if found else _last_line(str(error))


def _last_line(text: str) -> int | None:
    """Return the last line of the submission that a traceback names."""
    lines = re.findall(r'File ".*submission\.py", line (\d+)', text)
    return int(lines[-1]) if lines else None
