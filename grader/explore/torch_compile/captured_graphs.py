"""The graphs that torch.compile captures: where TorchDynamo breaks them, forward and backward, drawn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from grader.explore.drawing.displays import BLUE, DARK, GREY, ORANGE, PALE, Picture, write
from grader.feedback.report import code
from grader.words import plural

_JUMP = "Python needs a value of a tensor to choose a branch."  # Dynamo's "generic_jump"


@dataclass(frozen=True)
class Break:
    """One graph break: the line number in its cell or file, the line, and Dynamo's reason."""

    line: int | None
    code: str
    reason: str


@dataclass(frozen=True)
class Breaks:
    """The graph breaks of one call, in order, and the number of graphs. A table in a notebook."""

    found: tuple[Break, ...]
    graphs: int

    def __len__(self) -> int:
        return len(self.found)

    def __repr__(self) -> str:
        lines = [f"line {one.line}: {one.code}\n    {one.reason}" for one in self.found]
        return "\n".join([*lines, self._summary()])

    def _summary(self) -> str:
        return f"{plural(self.graphs, 'graph')}, {plural(len(self.found), 'break')}"

    def _repr_html_(self) -> str:
        left = "text-align:left; vertical-align:top"
        rows = "".join(
            f"<tr><td>{one.line}</td><td style='{left}'><code>{escape(one.code)}</code></td>"
            f"<td style='{left}'>{code(one.reason)}</td></tr>"
            for one in self.found
        )
        head = f"<tr><th>line</th><th style='{left}'>code</th><th style='{left}'>why the graph ends here</th></tr>"
        return f"<table>{head}{rows}</table><p>{self._summary()}</p>" if rows else f"<p>{self._summary()}</p>"


def graph_breaks(function: Callable[..., Any], *arguments: Any) -> Breaks:
    """Run `function(*arguments)` under `torch._dynamo.explain` and list the graph breaks."""
    import torch

    torch._dynamo.reset()
    with _quiet():
        found: Any = torch._dynamo.explain(function)(*arguments)
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
    """Silence Dynamo's warnings on stderr: the table lists the same breaks."""
    loggers = [logging.getLogger(name) for name in ("torch._dynamo", "torch.fx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


_SWEEPS = 12
_NODE_WIDTH, _BEND_WIDTH = 1.0, 0.3  # of a node, and of the space where a long edge passes a layer

Edge = tuple[str, str]


@dataclass(frozen=True)
class Layout:
    """The position `(x, layer)` of each node, and the points of each edge, both ends included."""

    nodes: dict[str, tuple[float, int]]
    edges: dict[Edge, tuple[tuple[float, int], ...]]

    @property
    def width(self) -> float:
        xs = [x for x, _ in self.nodes.values()]
        return max(xs) - min(xs) + _NODE_WIDTH

    @property
    def layers(self) -> int:
        return 1 + max(layer for _, layer in self.nodes.values())


def layered(nodes: Sequence[str], edges: Sequence[Edge]) -> Layout:
    """Lay out `nodes`, given in topological order.

    Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", 1981:
    layers by longest path, then each layer sorted by the mean position of its neighbours, down and up in turn.

    Raises:
        ValueError: an edge goes backward or names an unknown node.
    """
    number = {name: at for at, name in enumerate(nodes)}
    for start, end in edges:
        if start not in number or end not in number or number[start] >= number[end]:
            raise ValueError(f"The edge from {start!r} to {end!r} does not go forward in the order of the nodes.")
    layer = dict.fromkeys(nodes, 0)
    for name in nodes:
        layer[name] = max((layer[start] + 1 for start, end in edges if end == name), default=0)
    for name in reversed(nodes):  # a node without inputs goes just above its first use
        if not any(end == name for _, end in edges):
            layer[name] = max(min((layer[end] for start, end in edges if start == name), default=1) - 1, 0)
    chains = {edge: _chain(edge, layer) for edge in dict.fromkeys(edges)}
    rows: list[list[str]] = [[] for _ in range(1 + max(layer.values()))]
    for name in nodes:
        rows[layer[name]].append(name)
    for edge, chain in chains.items():
        for step, name in enumerate(chain[1:-1], start=1):
            rows[layer[edge[0]] + step].append(name)
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    x = _places(rows, above, below, set(nodes))
    at = {name: (x[name], row) for row, names in enumerate(rows) for name in names}
    return Layout(
        {name: at[name] for name in nodes}, {edge: tuple(at[name] for name in chain) for edge, chain in chains.items()}
    )


def _chain(edge: Edge, layer: dict[str, int]) -> list[str]:
    """Return the edge's ends, and a virtual node for each layer that it crosses."""
    start, end = edge
    return [start, *(f"{start}→{end}@{row}" for row in range(layer[start] + 1, layer[end])), end]


def _places(
    rows: list[list[str]], above: dict[str, list[str]], below: dict[str, list[str]], real: set[str]
) -> dict[str, float]:
    x = {name: float(at) for row in rows for at, name in enumerate(row)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for row in rows if down else reversed(rows):
            wish = {
                name: sum(x[other] for other in near[name]) / len(near[name]) if near.get(name) else x[name]
                for name in row
            }
            row.sort(key=lambda name: wish[name])
            _spread(row, wish, x, real)
    return x


def _spread(row: list[str], wish: dict[str, float], x: dict[str, float], real: set[str]) -> None:
    """Set positions as close to the desired ones as the widths allow, in this order."""
    place, edge = [], float("-inf")
    for name in row:
        half = (_NODE_WIDTH if name in real else _BEND_WIDTH) / 2
        place.append(max(wish[name], edge + half))
        edge = place[-1] + half
    shift = sum(wish[name] - got for name, got in zip(row, place, strict=True)) / max(len(row), 1)
    for name, got in zip(row, place, strict=True):
        x[name] = got + shift


_STEP, _UNIT = 0.62, 1.25  # inches from layer to layer, and for a node's width
_BOX = (0.84, 0.5)  # the size of a node, in these units
_BACKWARD = "#FBE3B4"  # a light ORANGE, readable under dark text


@dataclass(frozen=True)
class JointGraph:
    """A function's joint graph, and the forward and backward graphs it is split into, as FX GraphModules."""

    joint: Any
    forward: Any
    backward: Any

    @property
    def saved(self) -> tuple[str, ...]:
        """The names of the values that the forward graph saves for the backward graph."""
        return tuple(node.name for node in self.backward.graph.nodes if _is_input(node) and not _is_gradient(node))


def joint_graph(function: Callable[..., Any], *tensors: Any) -> JointGraph:
    """Trace `function(*tensors)` with AOTAutograd and split it by min-cut, so that as little as possible is saved.

    Raises:
        RuntimeError: no tensor requires a gradient.
    """
    import copy
    import warnings

    from functorch.compile import (  # type: ignore[import-untyped]
        aot_function,
        make_boxed_func,
        min_cut_rematerialization_partition,
    )

    found: list[JointGraph] = []

    def cut(joint: Any, inputs: Any, **settings: Any) -> tuple[Any, Any]:
        whole = copy.deepcopy(joint)
        forward, backward = min_cut_rematerialization_partition(joint, inputs, **settings)
        found.append(JointGraph(whole, forward, backward))
        return forward, backward

    def as_it_is(graph: Any, inputs: Any) -> Any:
        return make_boxed_func(graph.forward)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names in functorch that will move
        aot_function(function, fw_compiler=as_it_is, bw_compiler=as_it_is, partition_fn=cut)(*tensors)
    if not found:
        raise RuntimeError("There is no backward graph: give a tensor made with requires_grad=True.")
    return found[0]


def draw_graph(graph: Any, title: str = "", outputs: Sequence[str] = ()) -> Picture:
    """Draw an FX graph from top to bottom: inputs, operations, outputs.

    Operations that depend on an incoming gradient (an input named `tangents…`) are drawn differently.

    Args:
        graph: a GraphModule, or a Graph.
        title: printed above the picture and at the start of the alt text.
        outputs: names for the outputs, in their order.
    """
    from matplotlib.patches import FancyBboxPatch

    from grader.explore.drawing.displays import canvas, finish

    names, edges, kinds, labels = _parts(getattr(graph, "graph", graph), outputs)
    layout = layered(names, edges)
    left = min(x for x, _ in layout.nodes.values()) - 0.5
    top = -1.0 if title else -0.55
    width, height = layout.width, layout.layers - 0.45 - top
    figure, axes = canvas(max(width * _UNIT, 4.6), height * _STEP)
    spare = (figure.get_size_inches()[0] / _UNIT - width) / 2
    axes.set(xlim=(left - spare, left + width + spare), ylim=(layout.layers - 0.45, top))
    for points in layout.edges.values():
        x1, y1 = points[-1]
        path = [(x, float(y)) for x, y in points[:-1]]
        path[0] = (path[0][0], path[0][1] + _BOX[1] / 2)
        axes.plot(*zip(*path, strict=True), color=GREY, linewidth=1.3, zorder=1)
        arrow = {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (x1, y1 - _BOX[1] / 2), path[-1], arrowprops=arrow, zorder=1)
    for name, (x, y) in layout.nodes.items():
        face, edge, line, text = _STYLES[kinds[name]]
        axes.add_patch(
            FancyBboxPatch((x - _BOX[0] / 2, y - _BOX[1] / 2), *_BOX, boxstyle="round,pad=0,rounding_size=0.08",
                           facecolor=face, edgecolor=edge, linestyle=line, linewidth=1.5, zorder=2)
        )  # fmt: skip
        write(axes, x, y, labels[name], 10.5, color=text, zorder=3)
    if title:
        write(axes, left + width / 2, -0.72, title, 12)
    shown = min(int(figure.get_size_inches()[0] * 92), 760)
    return finish(figure, _words(title, names, edges, kinds, labels), width=shown)


_STYLES = {  # face, edge, line, text
    "input": (PALE, BLUE, "-", DARK),
    "operation": ("white", DARK, "-", DARK),
    "backward": (_BACKWARD, ORANGE, "--", DARK),
    "output": (DARK, DARK, "-", "white"),
}


def _is_input(node: Any) -> bool:
    return bool(node.op == "placeholder")


def _is_gradient(node: Any) -> bool:
    return bool(node.name.startswith("tangents"))


def _parts(
    graph: Any, outputs: Sequence[str]
) -> tuple[list[str], list[tuple[str, str]], dict[str, str], dict[str, str]]:
    """Return names in order, edges, and the kind and the label of each name. Unused nodes are left out."""
    names: list[str] = []
    edges: list[tuple[str, str]] = []
    kinds: dict[str, str] = {}
    labels: dict[str, str] = {}
    for node in graph.nodes:
        if node.op == "output":
            for number, value in enumerate(_nodes(node.args)):
                name = f"output {number}"
                names.append(name)
                edges.append((value.name, name))
                kinds[name], labels[name] = "output", outputs[number] if number < len(outputs) else "output"
        elif node.users or _is_input(node):
            names.append(node.name)
            before = [(value.name, node.name) for value in dict.fromkeys(node.all_input_nodes)]
            edges += before
            from_gradient = any(kinds[start] == "backward" for start, _ in before)
            kinds[node.name] = "input" if _is_input(node) else "backward" if from_gradient else "operation"
            if _is_input(node) and _is_gradient(node):
                kinds[node.name] = "backward"
            labels[node.name] = _label(node)
    return names, edges, kinds, labels


def _nodes(values: Any) -> Iterable[Any]:
    if isinstance(values, list | tuple):
        for value in values:
            yield from _nodes(value)
    elif hasattr(values, "op"):
        yield values


def _label(node: Any) -> str:
    """Return the operation's plain name with its numeric arguments: "pow 2"."""
    if _is_input(node):
        # Dynamo calls the argument `x` of a function `l_x_`.
        plain = node.name.removeprefix("l_").removeprefix("L_").rstrip("_")
        return str(plain if node.name.lower().startswith("l_") else node.name)
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    numbers = [f"{value:g}" for value in node.args if isinstance(value, int | float) and not isinstance(value, bool)]
    return " ".join([name.split(".")[0].strip("_"), *numbers])


def _words(
    title: str, names: list[str], edges: list[tuple[str, str]], kinds: dict[str, str], labels: dict[str, str]
) -> str:
    def of(name: str) -> str:
        return " and ".join(labels[start] for start, end in edges if end == name)

    inputs = [labels[name] for name in names if not any(end == name for _, end in edges)]
    steps = [f"{labels[name]} of {of(name)}" for name in names if kinds[name] in ("operation", "backward") and of(name)]
    results = [f"{labels[name]} from {of(name)}" for name in names if kinds[name] == "output"]
    start = f"{title}: a" if title else "A"
    return (
        f"{start} graph from top to bottom. Inputs: {', '.join(inputs)}. {plural(len(steps), 'operation')}: "
        f"{'; '.join(steps)}. Results: {'; '.join(results)}."
    )
