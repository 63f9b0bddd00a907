"""Count the kernels that Inductor fuses a graph into. On the CPU it is stopped there, before it asks a C++ compiler."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

# Bound here: a harness imports this before there is a submission, which could put something else in their place.
import torch._functorch.config as autograd_settings
import torch._inductor.config as settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torch's own
    from torch._inductor.compile_fx import compile_fx

__all__ = ["KernelCount", "can_count", "compile_and_count", "count_only"]

KernelCount = int | None  # None: this version of PyTorch has no hook after fusion
_HOOK = "_post_fusion_custom_pass"
_HAS_HOOK = hasattr(settings, _HOOK)


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
        counts.append(_kernels(nodes))
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
        counts.append(_kernels(nodes))
        return nodes

    compiled = _with_hook(look, lambda: compile_fx(graph, inputs))
    return compiled, sum(counts)


def _with_hook(hook: Callable[[Any], Any], compile_it: Callable[[], Any]) -> Any:
    """Without the caches, which would answer in the scheduler's place."""
    with (
        settings.patch({"fx_graph_cache": False, _HOOK: hook}),
        autograd_settings.patch({"enable_autograd_cache": False}),
    ):
        return compile_it()


def _kernels(nodes: Any) -> int:
    """A group of fused operations is a kernel; those that only name memory, or read a number on the host, are none."""
    return sum(not type(node).__name__.startswith("Nop") for node in nodes)
