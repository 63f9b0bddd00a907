"""One product in four languages: its listings and machine code, and the judge that takes it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.exercises import EXERCISES
from grader.explore.hopper.language_views import (
    FILES,
    PARTS,
    PRODUCTS,
    compiled_products,
    count_hopper_instructions,
    count_lines,
    hopper_product,
    show_product,
    time_products,
)
from grader.judge.rules import of_source

_OTHER_PATH = Path(__file__).parents[1] / "mistakes" / "matmul_open" / "right_pointers_alone.py"
_ENTRY = """
def matmul_open(a, b, out):
    hopper = a.device.type == "cuda" and torch.cuda.get_device_capability(a.device)[0] == 9
    if hopper and all(x.is_contiguous() and x.shape[1] % 8 == 0 and x.data_ptr() % 16 == 0 for x in (a, b, out)):
        product(a, b, out)
    else:
        any_matrices(a, b, out)
"""


def _submission(language: str) -> str:
    """A product as a solution of `matmul_open`, with another kernel for what it does not support."""
    other = _OTHER_PATH.read_text("utf-8").replace("def matmul_open", "def any_matrices")
    other = other.replace("def kernel", "def any_kernel").replace("kernel[grid]", "any_kernel[grid]")
    return "\n\n".join([(PRODUCTS / f"{FILES[language]}.py").read_text("utf-8"), other, _ENTRY])


@pytest.mark.parametrize("language", FILES)
def test_a_listing_is_the_source_without_its_marks(language: str) -> None:
    """The listing is Python that defines the product. Each line of code is counted once."""
    listing = show_product(language)
    text = "\n".join(line for line, _ in listing.lines)
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert functions[-1] == "product"
    assert "#: " not in text
    assert "//: " not in text
    counts = listing.counts()
    assert set(counts) <= {*PARTS, "rest"}
    code = [line for line in text.splitlines() if line.strip() and not line.strip().startswith(("# ", "// "))]
    assert counts.total() == len(code)
    html = listing._repr_html_()
    assert html.count("<div") == len(listing.lines) + 1
    assert str(listing).count("\n") == text.count("\n")


def test_each_part_is_where_its_words_are() -> None:
    """The marks are right for the calls that every reader looks for."""
    lines = [(line.strip(), part) for line, part in show_product("Gluon").lines]
    for word, part in (("load(a, [", "copy"), ("mbarrier.wait", "barrier"),
                       ("= warpgroup_mma(", "multiply"), ("store(out, [", "store")):  # fmt: skip
        assert {found for line, found in lines if word in line} == {part}, word


def test_the_lines_of_all_languages_are_compared() -> None:
    """The table has a row per language. The languages are in the order of their length."""
    head, *rows = count_lines()._table()
    assert [row[0] for row in rows] == list(FILES)
    totals = [int(row[-1]) for row in rows]
    assert totals == sorted(totals)
    assert all(sum(map(int, row[1:-1])) == total for row, total in zip(rows, totals, strict=True))
    assert head[1:5] == list(PARTS)


def test_the_machine_code_copies_by_tma_and_multiplies_by_wgmma() -> None:
    """All three use the hardware of a Hopper GPU, spill nothing, and load and store nothing else."""
    found = compiled_products()
    assert list(found) == ["Triton", "Gluon", "CUDA C++"]
    for code in found.values():
        assert min(code.count(name) for name in ("HGMMA", "UTMALDG", "UTMASTG")) > 0
        assert code.count(r"LDG\b") == code.count(r"STG\b") == code.spilled_bytes == 0
        assert code.registers == 168
    assert found["CUDA C++"].count("HGMMA") == 4
    rows = {row[0]: row[1:] for row in count_hopper_instructions()._table()}
    assert rows["WGMMA (HGMMA)"] == [str(code.count("HGMMA")) for code in found.values()]


def test_without_a_hopper_gpu_the_recorded_times_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It measures nothing then. An unknown language is refused, and a missing package is named."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "ecorded" in repr(time_products())
    with pytest.raises(ValueError, match="none in 'Fortran'"):
        show_product("Fortran")
    with pytest.raises(ModuleNotFoundError, match=r"cuda\.tile"):
        hopper_product("cuTile")


class _Event:
    def __init__(self, enable_timing: bool) -> None:
        self.at = 0.0

    def record(self) -> None:
        _Event.now = self.at = getattr(_Event, "now", 0.0) + 1.0

    def elapsed_time(self, end: _Event) -> float:
        return end.at - self.at


def test_on_a_hopper_gpu_the_products_are_timed_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets a row with its ratio to cuBLAS, and a missing package is named. A wrong product raises."""

    def product_of(language: str) -> Any:
        if language == "cuTile":
            raise ModuleNotFoundError("No module named 'cuda.tile'")
        return lambda a, b, out: torch.mm(a, b, out=out) if language != wrong else out.zero_()

    wrong, randn = "", torch.randn
    for name, value in {
        "torch.randn": lambda *shape, device: randn(*shape), "torch.cuda.is_available": lambda: True,
        "torch.cuda.get_device_capability": lambda: (9, 0), "torch.cuda.Event": _Event,
        "torch.cuda.synchronize": lambda: None,
        "grader.explore.hopper.language_views.hopper_product": product_of,
    }.items():  # fmt: skip
        monkeypatch.setattr(name, value)
    table = time_products(64)
    assert [row[::2] for row in table._table()[1:]] == [[name, "1.00"] for name in ("cuBLAS", *list(FILES)[1:])]
    assert "cuTile is not measured: No module named 'cuda.tile'." in repr(table)
    wrong = "Gluon"
    with pytest.raises(ArithmeticError, match="Gluon is wrong"):
        time_products(64)


@pytest.mark.parametrize("language", [language for language in FILES if language != "cuTile"])
def test_the_rules_take_each_language_for_a_kernel_of_your_own(language: str) -> None:
    """There is no finding, such as a missing kernel or a library's product."""
    assert of_source(_submission(language), EXERCISES["matmul_open"]) == ()


@pytest.mark.parametrize(("language", "what"), [("Gluon", "Gluon"), ("CUDA C++", "`__cvta_generic_to_shared`")])
def test_without_a_gpu_a_product_for_hopper_is_not_judged(quick_judge: Any, language: str, what: str) -> None:
    """Neither Triton's interpreter nor the C++ compiler can run it. The report says so, and blames nobody."""
    verdict = quick_judge.grade(_submission(language), "matmul_open")
    assert verdict.status == "not_judged"
    assert f"The simulator has no {what}; on a GPU it will be judged" in str(verdict.failure)


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", [language for language in FILES if language != "cuTile"])
def test_on_a_hopper_gpu_the_judge_takes_each_language(gpu_judge: Any, language: str) -> None:
    """Every case is right, also those of the sizes that a Hopper product supports."""
    verdict = gpu_judge.grade(_submission(language), "matmul_open")
    assert verdict.points >= EXERCISES["matmul_open"].correctness_points, verdict.failure
    assert [finding for finding in verdict.findings if finding.kind in ("rule", "clock")] == []
