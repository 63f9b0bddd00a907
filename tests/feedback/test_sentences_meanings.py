"""The table of errors: every real message of a tool gets the right advice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader.feedback.sentences import MEANINGS, explain
from tests.feedback.error_texts import TEXTS, TEXTS_WITH_LINES


@pytest.mark.parametrize(("text", "wanted"), TEXTS, ids=[text[:50] for text, _ in TEXTS])
def test_a_tools_own_words_are_explained(text: str, wanted: str) -> None:
    """An error gets its advice, with names and numbers filled in."""
    advice = explain(text)

    assert advice is not None
    assert wanted in f"{advice.says} {advice.do}"


@pytest.mark.parametrize(("text", "line", "wanted"), TEXTS_WITH_LINES, ids=[line for _, line, _ in TEXTS_WITH_LINES])
def test_the_line_tells_apart_what_is_worded_alike(text: str, line: str, wanted: str) -> None:
    """If a message has several causes, the line that failed, or the cell, decides and supplies the names."""
    advice = explain(text, line, line)

    assert advice is not None
    assert wanted in f"{advice.says} {advice.do}"


def test_without_the_line_nothing_is_guessed() -> None:
    """If a message has several causes and the line is unknown, there is no advice."""
    assert explain("TypeError: 'int' object is not iterable") is None
    assert explain("TypeError: 'int' object is not iterable", "    for i in n:") is None


def test_every_row_is_reached() -> None:
    """No row is hidden by an earlier one, and every row has a text that needs it."""
    known = [(text, "") for text, _ in TEXTS] + [(text, line) for text, line, _ in TEXTS_WITH_LINES]
    first = [next(row for row in MEANINGS if row.advice(text, line, line)) for text, line in known]

    assert [row for row in MEANINGS if row not in first] == []


def test_no_placeholder_is_left() -> None:
    """The advice has no unfilled group and ends like a sentence."""
    for text, _ in TEXTS:
        advice = explain(text)
        assert advice is not None
        for said in (advice.says, advice.do):
            assert not re.search(r"\{\d\}", said)
            assert said[-1] in ".?"


def test_an_unknown_error_gets_no_advice() -> None:
    """No advice is better than a guess."""
    assert explain("RuntimeError: the moon is full") is None


_PROVOKE = """
import sys
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

SCALE = 2.0

@triton.jit
def not_a_power(x, out, n, B: tl.constexpr):
    o = tl.arange(0, 100)
    tl.store(out + o, tl.load(x + o))

@triton.jit
def global_variable(x, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.load(x + o) * SCALE)

@triton.jit
def not_known(x, out, n, B: tl.constexpr):
    o = tl.arange(0, n)
    tl.store(out + o, tl.load(x + o))

@triton.jit
def shapes(x, out, n, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), tl.load(x + tl.arange(0, 64)) + tl.load(x + tl.arange(0, B)))

for kernel in (not_a_power, global_variable, not_known, shapes):
    try:
        signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "B": "constexpr"}
        triton.compile(ASTSource(kernel, signature, {"B": 128}), target=GPUTarget("cuda", 90, 32))
    except Exception as error:
        print(str(error).splitlines()[-1])
"""


def test_the_installed_triton_still_words_it_so(tmp_path: Path) -> None:
    """The table knows the messages of the installed Triton (compile only, so no GPU is needed)."""
    script = tmp_path / "provoke.py"
    script.write_text(_PROVOKE)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")

    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, env=environment)

    messages = run.stdout.splitlines()
    assert len(messages) == 4
    found = [explain(message) for message in messages]
    assert [advice.says if advice else message for advice, message in zip(found, messages, strict=True)] == [
        "The length of a `tl.arange` must be a power of two.",
        "A kernel cannot read the Python variable `SCALE`, which is defined outside it.",
        "The length of a block must be known at compile time.",
        "Two blocks have different lengths in dimension 0: 64 and 128.",
    ]
