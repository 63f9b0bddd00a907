"""Graphs are traced, laid out and drawn, and their breaks are listed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from grader.explore.torch_compile.captured_graphs import draw_graph, graph_breaks, joint_graph, layered


def one(x: Any) -> Any:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def captured(function: Any, *tensors: Any) -> Any:
    graphs: list[Any] = []

    def keep(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    torch.compile(function, backend=keep)(*tensors)
    return graphs[0]


def test_every_edge_goes_down_and_passes_no_node() -> None:
    """An edge runs from layer to layer, and a long edge keeps its distance from the nodes that it passes."""
    nodes = ["a", "b", "c", "e", "d"]
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("a", "e"), ("e", "d")]
    layout = layered(nodes, edges)
    for edge, points in layout.edges.items():
        assert points[0] == layout.nodes[edge[0]]
        assert points[-1] == layout.nodes[edge[1]]
        assert [row for _, row in points] == list(range(points[0][1], points[-1][1] + 1))
        for x, row in points[1:-1]:
            assert all(abs(x - at) >= 0.6 for at, other in layout.nodes.values() if other == row)


def test_nodes_of_a_layer_do_not_overlap() -> None:
    """Two nodes of one layer are at least a node's width apart."""
    edges = [("x", name) for name in "abcde"] + [(name, "z") for name in "abcde"]
    layout = layered(["x", *"abcde", "z"], edges)
    rows: dict[int, list[float]] = {}
    for x, row in layout.nodes.values():
        rows.setdefault(row, []).append(x)
    for places in rows.values():
        assert all(right - left >= 0.999 for left, right in itertools.pairwise(sorted(places)))
    assert layout.width >= 5


def test_an_edge_that_goes_back_is_refused() -> None:
    """The nodes are in the order of computation."""
    with pytest.raises(ValueError, match="does not go forward"):
        layered(["a", "b"], [("b", "a")])


def test_the_words_of_a_graph_say_what_it_computes() -> None:
    """The alt text lists each operation with its operands."""
    picture = draw_graph(captured(one, torch.rand(7)), "Captured")
    assert "Inputs: x. 5 operations: sin of x; pow 2 of sin; cos of x; pow 2 of cos; add of pow 2 and pow 2." in (
        picture.alt
    )
    assert picture.svg.count("<svg") == 1


def test_the_joint_graph_is_cut_where_least_is_kept() -> None:
    """The gradient of sin² + cos² needs only x; the two graphs compute the function and its derivative."""
    joint = joint_graph(one, torch.rand(7, requires_grad=True))
    assert joint.saved == ("primals_1",)
    x = torch.rand(7)
    result, kept = joint.forward(x)
    (gradient,) = joint.backward(kept, torch.ones(7))
    assert torch.allclose(result, torch.ones(7))
    assert torch.allclose(gradient, torch.zeros(7), atol=1e-6)


def test_what_needs_the_gradient_is_set_apart() -> None:
    """Boxes that depend on the incoming gradient are dashed; the forward graph has none."""
    joint = joint_graph(one, torch.rand(7, requires_grad=True))
    assert "stroke-dasharray" in draw_graph(joint.joint, outputs=("result", "gradient of x")).svg
    assert "stroke-dasharray" not in draw_graph(joint.forward).svg


def test_without_a_gradient_there_is_no_joint_graph() -> None:
    """The error says that requires_grad is missing."""
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        joint_graph(one, torch.rand(7))


def test_each_break_is_listed_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The list has each line that ends a graph and the reason; nothing is printed on stderr."""

    def broken(x: Any) -> Any:
        y = x + 1 if x.mean() > 0 else x - 1
        return y * y.max().item()

    found = graph_breaks(broken, torch.rand(5))
    assert [_one.code for _one in found.found] == ["y = x + 1 if x.mean() > 0 else x - 1", "return y * y.max().item()"]
    assert "a value of a tensor" in found.found[0].reason
    assert "Tensor.item()" in found.found[1].reason
    assert "<code>Tensor.item()</code>" in found._repr_html_()
    assert capsys.readouterr().err == ""


def test_a_whole_function_has_no_breaks() -> None:
    """There is one graph, and the list is empty."""
    found = graph_breaks(one, torch.rand(5))
    assert (len(found), found.graphs) == (0, 1)
    assert repr(found) == "1 graph, 0 breaks"
