"""Numbers that prose takes from the exercises and from recorded results."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.authoring.prose import Results, renderer
from grader.authoring.source_tree import SourceError

from .conftest import EXERCISES, ROW, SOFTMAX_BUILT, SOFTMAX_PATH, Checkout

CASE = 'bench="softmax", case="4096 × 8192"'


def rendered(tree: Checkout, text: str) -> str:
    return renderer(EXERCISES, Results(tree.root / "benchmarks" / "results"), tree.root / "source")(text)


def test_numbers_come_from_the_exercise(tree: Checkout) -> None:
    """Points and gates are the exercise's own; a whole number has no `.0`."""
    assert rendered(tree, '⟦ exercise("softmax").max_points ⟧ points') == "10 points"
    assert (
        rendered(tree, '⟦ gate("softmax", "torch").at_least ⟧×, ⟦ gate("softmax", "eager").at_least ⟧×') == "1.2×, 4×"
    )


def test_points_are_added_up(tree: Checkout) -> None:
    """A chapter and a notebook are worth the sum of their exercises."""
    softmax = EXERCISES["softmax"]
    for place in (softmax.chapter, f"{softmax.chapter}/{softmax.notebook}"):
        assert rendered(tree, f'⟦ points("{place}") ⟧') == "10"


def test_minutes_are_added_up(tree: Checkout) -> None:
    """A notebook takes the minutes that its first cell says, and a chapter those of its notebooks."""
    for name, minutes in (("a", 50), ("b", 75)):
        tree.write(f"source/05_more/{name}.py", f"# %% [markdown]\n# # A\n#\n# **You need** about {minutes} minutes.\n")
    assert rendered(tree, '⟦ minutes("05_more/a") ⟧ of ⟦ minutes("05_more") ⟧') == "50 of 125"


def test_numbers_come_from_recorded_results(tree: Checkout) -> None:
    """A recorded number prints with three digits and its unit; a ratio and a share print as such."""
    tree.record(
        ROW,
        {**ROW, "metric": "ratio_vs_torch", "value": 1.5236, "unit": ""},
        {**ROW, "metric": "share_of_copy", "value": 0.9312, "unit": ""},
    )
    assert rendered(tree, f'⟦ recorded({CASE}, metric="bandwidth_gbps", gpu="H200") ⟧') == "3,850 GB/s"
    assert rendered(tree, f'⟦ recorded({CASE}, metric="ratio_vs_torch") ⟧') == "1.52×"
    assert rendered(tree, f'⟦ recorded({CASE}, metric="share_of_copy") ⟧') == "93 %"
    assert rendered(tree, f'⟦ recorded({CASE}, metric="share_of_copy").gpu ⟧') == "NVIDIA H200"


def test_a_table_is_made_of_all_that_match(tree: Checkout) -> None:
    """`recorded_all` gives the rows in the order of the file."""
    tree.record(ROW, {**ROW, "case": "4096 × 781", "value": 12.345})
    text = '⟦% for r in recorded_all(bench="softmax") %⟧\n| ⟦ r.case ⟧ | ⟦ r.number ⟧ |\n⟦% endfor %⟧\n'
    assert rendered(tree, text) == "| 4096 × 8192 | 3,850 |\n| 4096 × 781 | 12.3 |\n"


def test_other_text_passes_through(tree: Checkout) -> None:
    """LaTeX, braces, C++ launches and Markdown come out as they went in."""
    text = r"$\frac{{a}}{b_{i}}$ `f<<<grid, {block}>>>(x)` [[0, 1]] {% raw %} {{ x }} <!-- {# #} -->" + "\n\n"
    assert rendered(tree, text) == text


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f'recorded({CASE}, metric="median_us")', "no recorded result has this metric; there is: bandwidth_gbps"),
        ('points("05_none")', "there is no exercise in '05_none'"),
        ('minutes("05_none")', "a notebook of '05_none' does not say"),
        ('recorded(bench="matmul")', "no recorded result has this bench; there is: softmax"),
        (f'recorded({CASE}, metric="bandwidth_gbps", gpu="A100")', "there is: NVIDIA H200"),
        ('recorded(bench="softmax")', "2 recorded results match"),
        ('recorded(benchmark="softmax")', "takes bench, case, metric and gpu"),
        ('exercise("softmaxx").max_points', "there is no exercise 'softmaxx'"),
        ('gate("softmax", "numpy").at_least', "no gate against 'numpy'"),
        ('exercise("softmax").maximum', "has no attribute"),
        ('exercise("softmax").gates[7].at_least', "cannot be filled in"),
        ("nothing", "'nothing' is undefined"),
        ("1 +", "cannot be filled in"),
        ("1 / 0", "cannot be filled in"),
    ],
)
def test_a_number_that_is_missing_is_an_error(tree: Checkout, expression: str, message: str) -> None:
    """The error says which values exist instead."""
    tree.record(ROW, {**ROW, "case": "4096 × 781"})
    with pytest.raises(SourceError, match=message):
        rendered(tree, f"⟦ {expression} ⟧")


@pytest.mark.parametrize("text", ["{", "{}", '[{"bench": "softmax"}]', "[3]"])
def test_a_file_that_holds_no_results_is_named(tree: Checkout, text: str) -> None:
    """A file that is not JSON, or not a list of full rows, is an error with the file's name."""
    tree.write("benchmarks/results/broken.json", text)
    with pytest.raises(SourceError, match=r"broken\.json"):
        rendered(tree, '⟦ recorded(bench="softmax") ⟧')


def test_a_missing_number_fails_the_build(tree: Checkout) -> None:
    """The build reports the file and line of the cell, does not write that notebook, and writes the others."""
    tree.replace(SOFTMAX_PATH, "It is worth", f'It reached ⟦ recorded({CASE}, metric="bandwidth_gbps") ⟧. It is worth')
    report = tree.build()
    assert not report.ok
    assert report.problems[0].startswith(f"{SOFTMAX_PATH}:1: recorded(")
    assert not (tree.root / SOFTMAX_BUILT).exists()
    assert report.written == ("02_load_inline/01_square_a_matrix.ipynb", "figures/bars.svg")
    tree.record(ROW)
    assert tree.build().ok
    assert "It reached 3,850 GB/s. It is worth 10 points" in (tree.root / SOFTMAX_BUILT).read_text(encoding="utf-8")


def test_a_new_measurement_makes_the_course_stale(tree: Checkout) -> None:
    """A notebook that quotes a number must be built again after the number was measured again."""
    tree.replace(SOFTMAX_PATH, "It is worth", f'⟦ recorded({CASE}, metric="bandwidth_gbps") ⟧. It is worth')
    tree.record(ROW)
    tree.build()
    assert tree.build(check=True).ok
    tree.record({**ROW, "value": 3900.0})
    assert len(tree.build(check=True).stale) == 1


def test_code_cells_are_not_templates(tree: Checkout) -> None:
    """Only prose is rendered; code stays as the author wrote it."""
    tree.replace(SOFTMAX_PATH, "import torch\n", 'brackets = "⟦ x ⟧"\n')
    assert tree.build().ok
    assert "⟦ x ⟧" in (tree.root / SOFTMAX_BUILT).read_text(encoding="utf-8")


def test_no_template_is_left_in_the_course() -> None:
    """No notebook of the course shows a reader a template's delimiters."""
    course = Path(__file__).parents[2] / "course"
    assert [path for path in course.rglob("*.ipynb") if "⟦" in path.read_text(encoding="utf-8")] == []
