"""Every page, docstring, comment and message keeps the rules of language that a program can check."""

from __future__ import annotations

from pathlib import Path

import pytest

from .wording import files, violations

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / name for name in ("docs", "benchmarks", "grader", "tests"))]
ON_PURPOSE = tuple(
    f"tests/honest/submissions/{name}.py"
    for name in (
        *("softmax/persistent", "softmax/row_a_program", "square_matrix/templates"),
        *("vector_add/autotuned", "vector_add/jit_helpers", "vector_add/unrolled"),
    )
)
"""Recorded gradings name these files by a hash of their text, so their text stays."""


def test_every_file_keeps_the_rules_of_language() -> None:
    """A failure lists file and line, the words, and better ones."""
    listed = []
    for path in files(PAGES):
        name = path.relative_to(ROOT)
        if str(name) not in ON_PURPOSE and name.parts[:2] != ("benchmarks", "results"):  # these quote reports
            listed += [str(violation).removeprefix(f"{ROOT}/") for violation in violations(path)]
    assert not listed, "\n".join(["", *listed])


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Who forges his events gets nothing.", "Who forges"),
        ("What needs no inputs is not timed.", "What needs"),
        ("Where there is none, the host waits.", "Where there"),
        ("Does a mean mend that?", "mend"),
        ("The time is held against the floor.", "held against"),
        ("It has three outputs, two of which are views.", "of which"),
        ("It is no notebook.", "is no notebook"),
        ("The kernel reads 4 bytes a thread.", "bytes a thread"),
        ("It loads one sample a thread.", "one sample a thread"),
        ("Masked lanes are in the sum.", "Masked lanes"),
        ("It is dropped, for it is stale.", "for it is"),
        ("It is 1 points.", "1 points"),
        ("The learner sees his score.", "his"),
        ("It waits. (A GPU does not.)", "(A GPU"),
        ("Moved are 8 bytes.", "Moved are"),
        ("It is set; else nothing is read.", "else"),
        ("It reads behind the end of the array.", "behind the end"),
        ("One " + "very " * 30 + "long sentence.", "One very"),
    ],
)
def test_a_violation_is_found(tmp_path: Path, sentence: str, found: str) -> None:
    """In a page, in a docstring, in a comment and in a message, each at its line."""
    page = tmp_path / "page.md"
    page.write_text(f"# What the page says\n\n{sentence}\n")
    (tmp_path / "grader").mkdir()
    module = tmp_path / "grader" / "module.py"
    module.write_text(f'"""{sentence}"""\n\nx = 1\n# {sentence}\ny = "{sentence}"\n')
    assert {(v.line, found in v.found) for v in violations(page)} >= {(3, True)}
    assert {v.line for v in violations(module) if found in v.found} == {1, 4, 5}


@pytest.mark.parametrize(
    "sentence",
    [
        "What does the kernel read?",
        "There is no GPU, and nothing is faster than that.",
        "It runs a program once a second, and loads a kernel.",
        "The compiler is told to keep 32 registers; the submission stands still.",
        "Call `mend(anew)` (see the table).",
        "At least 4 bytes per thread.",
        "It takes 1 row; e.g. `x` (one per block).",
        "Rows stay as they are, a folder of that name is left as it was, and one thread reads `x`, else `y`.",
    ],
)
def test_good_sentences_pass(tmp_path: Path, sentence: str) -> None:
    """Questions, code and words that only look alike."""
    page = tmp_path / "page.md"
    page.write_text(f"{sentence}\n\n```python\nmend(anew)  # Who forges his events.\n```\n")
    assert violations(page) == []


@pytest.mark.parametrize(
    ("expression", "caught"),
    [
        ('f"{n} points"', True),
        ('f"{len(rows)} more rows"', True),
        ('f"{plural(n, "row")} more"', False),
        ('f"{LIMIT} bytes"', False),
        ('f"{n} points" if n != 1 else "1 point"', False),
    ],
)
def test_a_count_before_a_plural_needs_the_helper(tmp_path: Path, expression: str, caught: bool) -> None:
    """A count may be 1; a constant is what it is."""
    (tmp_path / "grader").mkdir()
    module = tmp_path / "grader" / "module.py"
    module.write_text(f"x = {expression.replace(chr(34) + 'row' + chr(34), chr(39) + 'row' + chr(39))}\n")
    assert bool(violations(module)) == caught


def test_rules_are_chosen_by_kind(tmp_path: Path) -> None:
    """Of a page that breaks two kinds only the kind that is asked for is listed."""
    page = tmp_path / "page.md"
    page.write_text("Who mends it is paid.\n")
    assert [v.found for v in violations(page, ("word",))] == ['"mends"']
    assert len(violations(page)) == 2
