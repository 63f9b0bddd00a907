"""A function is called as one compiled graph, or a message says why it cannot be."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from grader.worker.harnesses.compiled_graph import (
    GraphBreak,
    InputChanged,
    NothingFused,
    Recompiled,
    TooManyKernels,
    TripToTheCpu,
    WholeGraph,
)
from grader.worker.outputs import NotATensor

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings(
        "ignore:.*torch.jit.script:DeprecationWarning"
    ),  # torch's own, when Inductor is imported
]
seen: dict[str, Any] = {"calls": 0}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def run(function: Any, most_kernels: int = 1, rows: int = 4) -> Any:
    x = torch.rand(rows, 50)
    return x, WholeGraph(function, most_kernels)(torch.empty_like(x), x)


def test_it_computes_what_the_function_computes() -> None:
    """There is one graph per shape, with the same results."""

    def twice(x: Any) -> Any:
        return x * 2

    whole = WholeGraph(twice, 1)
    for rows in (4, 5, 6, 4):
        x = torch.rand(rows, 50)
        assert torch.equal(whole(torch.empty_like(x), x), 2 * x)
    assert (whole.graphs, whole.kernels) == (3, 1)


def test_more_shapes_than_dynamo_allows_by_default_are_no_recompile() -> None:
    """Each shape has a graph, however many shapes there are."""

    def twice(x: Any) -> Any:
        return x * 2

    whole = WholeGraph(twice, 1)
    for rows in range(2, 14):
        x = torch.rand(rows, 5)
        whole(torch.empty_like(x), x)
    assert whole.graphs == 12


def test_a_break_is_raised_at_its_line() -> None:
    """The traceback ends in the function's file, at the line that Dynamo could not trace."""

    def branch(x: Any) -> Any:
        if x.mean() > 0:
            return x
        return -x

    with pytest.raises(GraphBreak, match=r"[Dd]ata-dependent") as raised:
        run(branch)
    assert (raised.traceback[-1].path, raised.traceback[-1].lineno) == (
        raised.traceback[0].path,
        branch.__code__.co_firstlineno,  # the line after the first
    )


def test_a_value_that_is_fetched_is_named() -> None:
    """`item` is captured by fullgraph, but it is a trip to the CPU."""

    def fetch(x: Any) -> Any:
        return x * x.max().item()

    with pytest.raises(TripToTheCpu, match=r"`\.item\(\)`"):
        run(fetch)


def test_too_many_kernels_are_counted() -> None:
    """The message has the number."""

    def by_all(x: Any) -> Any:
        return x / x.sum()

    with pytest.raises(TooManyKernels, match="fused into more kernels than allowed: 2, at most 1"):
        run(by_all)
    assert run(by_all, most_kernels=2)


def test_where_kernels_cannot_be_counted_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other versions of PyTorch may not have the hook. The log says so once, and nothing is refused."""

    def by_all(x: Any) -> Any:
        return x / x.sum()

    monkeypatch.setattr("grader.worker.harnesses.compiled_graph._HAS_HOOK", False)
    whole = WholeGraph(by_all, 1)
    for rows in (4, 5):
        x = torch.rand(rows, 50)
        whole(torch.empty_like(x), x)
    said = capsys.readouterr().out
    assert said.count("did not count kernels") == 1
    assert "The limit of 1 was not checked." in said


def test_what_was_not_compiled_is_refused() -> None:
    """Without a count, the limit is not kept: compilation is switched off, or there is nothing to fuse."""
    torch.compiler.set_stance("force_eager")
    try:
        with pytest.raises(NothingFused, match="captured no graph"):
            run(lambda x: x + 1)
    finally:
        torch.compiler.set_stance("default")
    with pytest.raises(NothingFused, match="no kernel"):
        run(lambda x: x)


def test_writing_to_an_input_is_refused_and_the_input_stays() -> None:
    """The function is tried on copies first."""

    def write(x: Any) -> Any:
        return x.mul_(2)

    x = torch.ones(3, 3)
    with pytest.raises(InputChanged):
        WholeGraph(write, 1)(torch.empty_like(x), x)
    assert torch.equal(x, torch.ones(3, 3))


def test_state_that_changes_is_a_recompile() -> None:
    """A counter outside of the function causes a new graph in every call."""

    def count(x: Any) -> Any:
        seen["calls"] += 1
        return x * 2

    with pytest.raises(Recompiled):
        run(count)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda x: None, "not NoneType"),
        (lambda x: x.double(), "torch.float64"),
        (lambda x: x[:, :1], "the shape"),
    ],
)
def test_a_result_unlike_the_output_is_refused(result: Any, words: str) -> None:
    """Its shape must not be broadcast silently, nor its type converted."""
    with pytest.raises(NotATensor, match=words):
        run(result)


def test_an_error_of_the_function_is_its_own() -> None:
    """The function is called uncompiled first, so its errors are unchanged."""

    def unwritten(x: Any) -> Any:
        raise NotImplementedError("not written yet")

    with pytest.raises(NotImplementedError):
        run(unwritten)


@pytest.mark.gpu
def test_on_a_gpu_inductor_compiles_the_graph_and_the_kernels_are_counted() -> None:
    """As in the solution, a reduction of a few weights and then rows give two kernels and the same results."""

    def scale(x: Any, w: Any) -> Any:
        y = x / x.abs().amax(dim=1, keepdim=True)
        return torch.where(w.mean() > 0, y.tanh(), y)

    x, w = torch.rand(64, 1000, device="cuda"), torch.rand(8, device="cuda")
    whole = WholeGraph(scale, 2)
    assert torch.allclose(whole(torch.empty_like(x), x, w), scale(x, w), atol=1e-6)
    assert whole.kernels == 2


@pytest.mark.parametrize(
    "fetch",
    [lambda x: x.to("cpu"), lambda x: x.to(device="cpu"), lambda x: torch.Tensor.cpu(x)],
    ids=["to", "keyword", "function"],
)
def test_other_ways_to_the_cpu_are_seen(fetch: Any) -> None:
    """They are found even if the tensor already is on the CPU, as without a GPU. `.to(x.device)` is allowed."""
    with pytest.raises(TripToTheCpu):
        run(lambda x: fetch(x) * 2)
    run(lambda x: x.to(x.device) * 2)


def test_what_a_graph_does_to_each_element_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal calls count once, and a square, a value per row and float32 not at all."""
    facts: list[dict[str, Any]] = []
    monkeypatch.setattr("grader.worker.toolchain.forked.facts", facts)

    def work(x: Any) -> Any:
        peak = torch.exp(x.amax(dim=1, keepdim=True)).double()
        wide = torch.tanh(x).double() + torch.tanh(x) ** 2
        return (torch.cos(wide) * peak).float()

    run(work, most_kernels=4)
    (fact,) = facts
    assert (fact["special"], fact["special_names"], fact["double_results"]) == (2, "tanh, cos", 4)
