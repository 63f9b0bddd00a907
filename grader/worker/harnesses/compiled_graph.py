"""Call a function as one compiled graph, and say in a sentence why it is not one."""

from __future__ import annotations

import copy
import os
import re
import time
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import torch
import torch._dynamo.config as settings
import torch._functorch.config as autograd_settings
import torch._inductor.config as inductor_settings

from grader.worker.outputs import must_be_like

# Which kernels a call runs on the GPU; in the simulator, which operations of torch. A submission can lie here.

_MOST_ROWS = 64
_MOST_CHARACTERS = 400
_NO_WORK = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "set_", "copy_", "_to_copy"}


def ran(call: Callable[[], None]) -> list[dict[str, Any]]:
    """Calls once; up to 64 rows `{"name", "count", "microseconds"}`, longest together first.

    On a GPU: kernels, copies and fills, by torch's profiler; none where the profiler does not work. In the simulator:
    the operations of torch, as "aten::add.Tensor", that make or change floating-point tensors other than by copying.
    What `call` raises passes through.
    """
    simulated = os.environ.get("TRITON_INTERPRET") == "1"
    seen = _operations(call) if simulated else _kernels(call)
    rows: dict[str, dict[str, Any]] = {}
    for name, microseconds in seen:
        row = rows.setdefault(name, {"name": name, "count": 0, "microseconds": 0.0})
        row["count"] += 1
        row["microseconds"] += microseconds
    return sorted(rows.values(), key=lambda row: -row["microseconds"])[:_MOST_ROWS]


def _kernels(call: Callable[[], None]) -> list[tuple[str, float]]:
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as session:
        call()
        torch.cuda.synchronize()
    events = [event for event in session.events() or [] if event.device_type.name == "CUDA"]
    kernels = [event for event in events if not getattr(event, "is_user_annotation", False)]
    return [(event.name[:_MOST_CHARACTERS], float(event.device_time)) for event in kernels]


def _operations(call: Callable[[], None]) -> list[tuple[str, float]]:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[tuple[str, float]] = []

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            begun = time.perf_counter()
            result = func(*args, **(kwargs or {}))
            name = func.name()
            made = result if isinstance(result, torch.Tensor) else None
            plain = name.removeprefix("aten::").partition(".")[0]
            if made is not None and made.is_floating_point() and made.dim() and plain not in _NO_WORK:
                seen.append((name[:_MOST_CHARACTERS], 1e6 * (time.perf_counter() - begun)))
            return result

    with Watch():  # type: ignore[no-untyped-call]
        call()
    return seen


# Count the kernels that Inductor fuses a graph into. On the CPU it is stopped there, before it asks a C++ compiler.

# Bound here: a harness imports this before there is a submission, which could put something else in their place.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torch's own
    from torch._inductor.compile_fx import compile_fx


KernelCount = int | None  # None: this version of PyTorch has no hook after fusion
_HOOK = "_post_fusion_custom_pass"
_HAS_HOOK = hasattr(inductor_settings, _HOOK)


class _Fused(Exception):
    """Fusion is done and nothing more is wanted."""


def can_count() -> bool:
    """Whether this version of PyTorch has the private hook that counting needs."""
    return _HAS_HOOK


def count_only(graph: Any, inputs: Any) -> KernelCount:
    """How many kernels `graph` is fused into, without generating any. `graph` is an FX GraphModule, left as it was."""
    if not can_count():
        return None
    counts: list[int] = []

    def stop(nodes: Any) -> Any:
        counts.append(_fused_kernels(nodes))
        raise _Fused

    try:
        _with_hook(stop, lambda: compile_fx(copy.deepcopy(graph), inputs))
    except Exception:
        if not counts:  # it failed before it came to fusion
            raise
    return sum(counts)


def compile_and_count(graph: Any, inputs: Any) -> tuple[Callable[..., Any], KernelCount]:
    """The graph compiled by Inductor as `torch.compile` does it, and how many kernels it was fused into."""
    if not can_count():
        return compile_fx(graph, inputs), None  # type: ignore[return-value]
    counts: list[int] = []

    def look(nodes: Any) -> Any:
        counts.append(_fused_kernels(nodes))
        return nodes

    compiled = _with_hook(look, lambda: compile_fx(graph, inputs))
    return compiled, sum(counts)


def _with_hook(hook: Callable[[Any], Any], compile_it: Callable[[], Any]) -> Any:
    """Without the caches, which would answer in the scheduler's place."""
    with (
        inductor_settings.patch({"fx_graph_cache": False, _HOOK: hook}),
        autograd_settings.patch({"enable_autograd_cache": False}),
    ):
        return compile_it()


def _fused_kernels(nodes: Any) -> int:
    """A group of fused operations is a kernel; those that only name memory, or read a number on the host, are none."""
    return sum(not type(node).__name__.startswith("Nop") for node in nodes)


# Call a function as one compiled graph, and say in a sentence why it is not one.

_HOST = ("cpu", "item", "numpy", "tolist")  # methods of a tensor whose result lies on the host
_SHAPES = 64  # compilations, one a shape
_compile = torch.compile  # bound before there is a submission, which could put something else in its place


class GraphBreak(RuntimeError):
    """Dynamo cannot trace a line, so there would be more than one graph."""


class InputChanged(RuntimeError):
    """The function wrote to a tensor that it was given."""


class NothingFused(RuntimeError):
    """No graph was captured, or no kernel of it was counted: it cannot be told how many there are."""


class Recompiled(RuntimeError):
    """A second call with the same shapes was compiled again."""


class TooManyKernels(RuntimeError):
    """The graph was fused into more kernels than are allowed."""


class TripToTheCpu(RuntimeError):
    """The graph fetches values to the host."""


class WholeGraph:
    """`entry` under `torch.compile(fullgraph=True, dynamic=False)`, looked at once a shape.

    On CUDA tensors Inductor compiles the graph. On the CPU Inductor fuses it, which gives the number of kernels, and
    PyTorch runs the graph as it was captured: a C++ compiler would take longer than all the rest.
    """

    def __init__(self, entry: Callable[..., Any], most_kernels: int) -> None:
        entry = getattr(entry, "_torchdynamo_orig_callable", entry)  # of one that is decorated with torch.compile
        self.entry, self.most_kernels = entry, most_kernels
        self.kernels: KernelCount = None
        self.graphs = 0
        self._said_uncounted = False
        self._known: set[tuple[Any, ...]] = set()
        self._fetched: list[tuple[str, int | None]] = []  # of the graph that was captured last
        for name in ("recompile_limit", "cache_size_limit"):  # of this version of PyTorch and of older ones
            if hasattr(settings, name):
                setattr(settings, name, _SHAPES)
        self._compiled = _compile(entry, fullgraph=True, dynamic=False, backend=self._backend)

    def __call__(self, out: Any, *arrays: Any) -> Any:
        """What the compiled function returns for `arrays`: a tensor like `out`.

        Raises:
            GraphBreak, InputChanged, NotATensor, NothingFused, Recompiled, TooManyKernels, TripToTheCpu: see there; and
            whatever the function raises where it is not compiled.
        """
        shapes = tuple(array.shape for array in arrays)
        if shapes not in self._known:
            self._look(out, arrays)
            self._known.add(shapes)
        graphs = self.graphs
        result = self._compiled(*arrays)
        if self.graphs > graphs:
            raise Recompiled("a second call with the same shapes was compiled again, since something else had changed")
        return result

    def _look(self, out: Any, arrays: tuple[Any, ...]) -> None:
        """One call as it is, whose errors are plain Python's, and one compiled; both on copies."""
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
            raise_at(self.entry, _line_of(error, self.entry), GraphBreak(_said(error)))
        for name, line in self._fetched:
            raise_at(self.entry, line, TripToTheCpu(f"the graph fetches a value to the CPU: `.{name}()`"))
        if self.graphs == graphs:
            raise NothingFused("torch.compile captured no graph: leave its settings as they are")
        if not can_count():
            self._say_uncounted()
        elif not self.kernels:
            raise NothingFused("the graph was fused into no kernel: nothing in it computes the result")
        elif self.kernels > self.most_kernels:
            raise TooManyKernels(f"fused into {self.kernels} kernels, at most {self.most_kernels} are allowed")

    def _say_uncounted(self) -> None:
        """Once, for the learner's log: a limit that is not checked must not seem to be kept."""
        if not self._said_uncounted:
            print(
                f"The grader did not count kernels: torch {torch.__version__} lacks the hook that it needs. "
                f"The limit of {self.most_kernels} was not checked.",
                flush=True,
            )
        self._said_uncounted = True

    def _backend(self, graph: Any, inputs: Any) -> Callable[..., Any]:
        self.graphs += 1
        self._fetched[:] = _fetched(graph)
        self.kernels = None
        if self._fetched:  # which is said next; nothing needs to be compiled
            return graph.forward  # type: ignore[no-any-return]
        if any(getattr(one, "is_cuda", False) for one in inputs):
            compiled, self.kernels = compile_and_count(graph, inputs)
            return compiled
        self.kernels = count_only(graph, inputs)
        return graph.forward  # type: ignore[no-any-return]


def raise_at(entry: Callable[..., Any], line: int | None, error: Exception) -> NoReturn:
    """Raises `error` as if that line of the file of `entry` had, so that a report can name the line."""
    code = getattr(entry, "__code__", None)
    if line is None or code is None:
        raise error from None
    error.__suppress_context__ = True
    exec(compile("\n" * (line - 1) + "raise error", code.co_filename, "exec"), {"error": error})
    raise error


def _fetched(graph: Any) -> list[tuple[str, int | None]]:
    """The operations of the graph that take a value to the host, each with its line."""
    found = [(_name(node), node) for node in graph.graph.nodes if node.op in ("call_method", "call_function")]
    return [
        (name, _last_line(node.stack_trace or ""))
        for name, node in found
        if name in _HOST or (name == "to" and "cpu" in (*node.args[1:], *node.kwargs.values()))
    ]


def _name(node: Any) -> str:
    return str(getattr(node.target, "__name__", node.target)).rpartition(".")[2]


def _is_break(error: Exception) -> bool:
    kind = type(error)
    return kind.__module__.startswith("torch._dynamo.exc") and kind.__name__ != "BackendCompilerFailed"


def _said(error: Exception) -> str:
    """What Dynamo says of a break: its title, and the explanation's first line."""
    text = str(error).strip()
    explanation = re.search(r"Explanation: (.+)", text)
    title = text.split("\n")[0]
    return f"{title}: {explanation[1]}" if explanation else title


def _line_of(error: Exception, entry: Callable[..., Any]) -> int | None:
    """The innermost line of the entry's file that Dynamo was at."""
    file = getattr(getattr(entry, "__code__", None), "co_filename", None)
    found = [frame.lineno for frame in getattr(error, "real_stack", None) or () if frame.filename == file]
    return found[-1] if found else _last_line(str(error))


def _last_line(text: str) -> int | None:
    """The last line of the submission that a traceback names."""
    lines = re.findall(r'File ".*submission\.py", line (\d+)', text)
    return int(lines[-1]) if lines else None
