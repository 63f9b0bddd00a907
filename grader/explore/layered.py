"""A layout for small directed graphs: layers from top to bottom, few crossings, long edges led around the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Layout", "layered"]

_SWEEPS = 12
_NODE, _BEND = 1.0, 0.3  # the width of a node, and of a place where a long edge passes

Edge = tuple[str, str]


@dataclass(frozen=True)
class Layout:
    """Where each node stands, `(x, layer)`, and the points that each edge runs through, both ends included."""

    nodes: dict[str, tuple[float, int]]
    edges: dict[Edge, tuple[tuple[float, int], ...]]

    @property
    def width(self) -> float:
        xs = [x for x, _ in self.nodes.values()]
        return max(xs) - min(xs) + _NODE

    @property
    def layers(self) -> int:
        return 1 + max(layer for _, layer in self.nodes.values())


def layered(nodes: Sequence[str], edges: Sequence[Edge]) -> Layout:
    """Place `nodes`, which stand in an order in which every edge goes forward.

    Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", 1981:
    layers by longest path, then each layer sorted by the mean place of its neighbours, down and up in turn.

    Raises:
        ValueError: an edge goes backward, or names a node that there is not.
    """
    number = {name: at for at, name in enumerate(nodes)}
    for start, end in edges:
        if start not in number or end not in number or number[start] >= number[end]:
            raise ValueError(f"The edge from {start!r} to {end!r} does not go forward in the order of the nodes.")
    layer = dict.fromkeys(nodes, 0)
    for name in nodes:
        layer[name] = max((layer[start] + 1 for start, end in edges if end == name), default=0)
    for name in reversed(nodes):  # what has no inputs stands just above its first use
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
    """The edge's ends, and between them a name for each layer that it passes."""
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
    """Places as near to the wishes as the widths allow, in this order."""
    place, edge = [], float("-inf")
    for name in row:
        half = (_NODE if name in real else _BEND) / 2
        place.append(max(wish[name], edge + half))
        edge = place[-1] + half
    shift = sum(wish[name] - got for name, got in zip(row, place, strict=True)) / max(len(row), 1)
    for name, got in zip(row, place, strict=True):
        x[name] = got + shift
