"""The graphs of torch.compile as pictures: what TorchDynamo captured, and AOTAutograd's forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grader.explore.picture import BLUE, DARK, GREY, ORANGE, PALE, Picture

__all__ = ["JointGraph", "draw_graph", "joint_graph"]

_STEP, _UNIT = 0.62, 1.25  # inches from layer to layer, and for a node's width
_BOX = (0.84, 0.5)  # of a node, in those units
_BACKWARD = "#FBE3B4"  # a light form of ORANGE: dark text is read on it


@dataclass(frozen=True)
class JointGraph:
    """A function's forward and backward: in one graph, and the two that it is cut into. All are FX GraphModules."""

    joint: Any
    forward: Any
    backward: Any

    @property
    def saved(self) -> tuple[str, ...]:
        """What the forward graph keeps for the backward graph."""
        return tuple(node.name for node in self.backward.graph.nodes if _is_input(node) and not _is_gradient(node))


def joint_graph(function: Callable[..., Any], *tensors: Any) -> JointGraph:
    """Trace `function(*tensors)` with AOTAutograd, and cut it in two where the least has to be saved.

    Raises:
        RuntimeError: no tensor needs a gradient, or this version of PyTorch does it in another way.
    """
    import warnings

    try:
        from functorch.compile import (  # type: ignore[import-untyped]
            aot_function,
            make_boxed_func,
            min_cut_rematerialization_partition,
        )
    except ImportError as error:
        raise RuntimeError("This version of PyTorch has no functorch.compile, which makes the joint graph.") from error
    import copy

    found: list[JointGraph] = []

    def cut(joint: Any, inputs: Any, **settings: Any) -> tuple[Any, Any]:
        whole = copy.deepcopy(joint)
        forward, backward = min_cut_rematerialization_partition(joint, inputs, **settings)
        found.append(JointGraph(whole, forward, backward))
        return forward, backward

    def as_it_is(graph: Any, inputs: Any) -> Any:
        return make_boxed_func(graph.forward)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names in functorch that will move
        aot_function(function, fw_compiler=as_it_is, bw_compiler=as_it_is, partition_fn=cut)(*tensors)
    if not found:
        raise RuntimeError("There is no backward graph: give a tensor made with requires_grad=True.")
    return found[0]


def draw_graph(graph: Any, title: str = "", outputs: Sequence[str] = ()) -> Picture:
    """Draw an FX graph from top to bottom: inputs, operations, outputs.

    Operations that depend on an incoming gradient (an input named `tangents…`) are set apart.

    Args:
        graph: a GraphModule, or a Graph.
        title: begins the alt text and stands above the picture.
        outputs: names for the outputs, in their order.
    """
    from matplotlib.patches import FancyBboxPatch

    from grader.explore.layered import layered
    from grader.explore.picture import canvas, finish

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
        axes.text(x, y, labels[name], ha="center", va="center", fontsize=10.5, color=text, zorder=3)
    if title:
        axes.text(left + width / 2, -0.72, title, ha="center", va="center", fontsize=12, color=DARK)
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
    """Names in order, edges, and the kind and the label of each name. Nodes that lead nowhere are left out."""
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
    """The operation's plain name, and the numbers that it is given: "pow 2"."""
    if _is_input(node):
        return _plain_input(node.name)
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    numbers = [f"{value:g}" for value in node.args if isinstance(value, int | float) and not isinstance(value, bool)]
    return " ".join([name.split(".")[0].strip("_"), *numbers])


def _plain_input(name: str) -> str:
    """Dynamo calls the argument `x` of a function `l_x_`."""
    return name.removeprefix("l_").removeprefix("L_").rstrip("_") if name.lower().startswith("l_") else name


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
        f"{start} graph from top to bottom. Inputs: {', '.join(inputs)}. {len(steps)} operations: {'; '.join(steps)}. "
        f"Results: {'; '.join(results)}."
    )
