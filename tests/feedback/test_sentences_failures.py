"""Failures in words: what happened, what it means, what to do."""

from __future__ import annotations

from typing import get_args

import pytest

from grader.exercises import find
from grader.feedback.sentences import explained, message_of
from grader.verdict import Failure, FailureKind


@pytest.mark.parametrize(
    ("wrapped", "plain"),
    [
        ("InterpreterError: ValueError(\"arange's range\")", "ValueError: arange's range"),
        ("InterpreterError: InterpreterError('ValueError(\"axis 1 is out\")')", "ValueError: axis 1 is out"),
        ("InterpreterError: Foo('a', {[]: 1}, 'b')", "Foo: a', {[]: 1}, 'b"),
        ("NameError('offs is not defined')", "NameError: offs is not defined"),
        ("ValueError: no wrapping\nin two lines", "ValueError: no wrapping in two lines"),
        ("\x1b[31mred\x1b[0m \u202etxt.exe", "red txt.exe"),
    ],
)  # fmt: skip
def test_messages_are_unwrapped_and_harmless(wrapped: str, plain: str) -> None:
    """A message loses Triton's wrapping, its line breaks and all terminal controls."""
    assert message_of(Failure("exception", wrapped)) == plain


def test_the_table_explains_compile_errors_and_exceptions() -> None:
    """The table's advice is used even if only the detail holds the compiler's message."""
    failure = Failure("compile", "Error building extension", 9, 'main.cu(9): error: expected a ";"')

    told = explained(failure)

    assert told.title == "It does not compile"
    assert told.line == 9
    assert "semicolon" in told.meaning
    assert "`;`" in told.advice


def test_the_line_that_failed_decides_between_causes() -> None:
    """The cell's source supplies the failure's line; a line that does not exist is ignored."""
    failure = Failure("exception", "TypeError: 'int' object is not iterable", 2)

    told = explained(failure, source="x = 1\ne = sum(x)\n")
    assert "`sum`" in told.meaning
    assert told.diagnosed
    assert not explained(failure, source="one line").diagnosed


def test_what_we_found_is_not_called_an_exception() -> None:
    """If the loads are narrow or a hint is false, the code raised no exception, and the title says so."""
    narrow = "NarrowLoads: k: its loads are too narrow; the addresses allow more, but the mask does not"
    false = "FalseHint: tl.multiple_of(…, 4) is false: there is a 1"
    titles = [explained(Failure("exception", message)).title for message in (narrow, false, "KeyError: 'x'")]
    assert titles == ["Its loads are too narrow", "A hint is false", "It raised an exception"]


def test_an_endless_loop() -> None:
    """A timeout mentions loops, and barriers if the language has them."""
    late = Failure("timeout", "It did not end within 60 s and was stopped.")

    assert "barrier" not in explained(late, find("softmax")).meaning
    assert "__syncthreads" in explained(late, find("square_matrix")).advice
    assert "loop" in explained(late, find("softmax")).meaning
    assert "__syncthreads" not in explained(late, find("periodogram_numpy")).advice


_SLOW = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    {body}

def vector_add(x, y, out):
    kernel[{grid}](x, out, x.numel(), B=1024)
"""
_ONE, _BLOCK = (
    "for i in range(n): total += tl.load(x_ptr + i)",
    "tl.load(x_ptr + tl.program_id(0) * B + tl.arange(0, B))",
)
_PLANE = "tl.load(x_ptr + tl.program_id(0) + tl.program_id(1) + tl.arange(0, B))"


@pytest.mark.parametrize(
    ("body", "grid", "said"),
    [
        (_ONE, "(4,)", "one element at a time"),
        (_BLOCK, "4, 1024", "has no threads"),
        (_BLOCK, "(4, 1024)", "has no threads"),
        (_PLANE, "4, 1024", "a loop never ends"),
        (_BLOCK, "(4,)", "a loop never ends"),
    ],
)
def test_a_slow_kernel_is_not_called_endless_if_its_source_tells_more(body: str, grid: str, said: str) -> None:
    """One element at a time, or a grid with threads; and cases that passed are not forgotten."""
    late = Failure("timeout", "The run did not end within 15 s and was stopped.")
    source = _SLOW.format(body=body, grid=grid)

    assert said in explained(late, find("vector_add"), source).meaning
    assert explained(late, find("vector_add"), source, right=2).meaning.startswith("The smaller cases are right")


_WHILE = """
def power(n):
    j = 0
    while {test}:
        {body}
    j = j + 1
"""


@pytest.mark.parametrize(
    ("test", "body", "named"),
    [
        ("j < n", "n[0]", True),
        ("j < n", "j += 1", False),
        ("j < n", "for j in range(n): pass", False),
        ("j < n", "break", False),
        ("n[j] < 0", "pass", False),
        ("n.left < 0", "n.left += 1", False),
        ("(j := j + 1) < n", "pass", False),
        ("True", "pass", False),
    ],
)
def test_a_loop_that_changes_no_name_of_its_condition_is_named(test: str, body: str, named: bool) -> None:
    """Others may end: by `break`, or because another thread changes memory. It ended if there are right cases."""
    late = Failure("timeout", "The run did not end within 15 s and was stopped.")
    meaning = explained(late, find("ls_numba_unsigned"), _WHILE.format(test=test, body=body)).meaning
    assert (meaning == "The loop `while j < n` never ends: nothing in it changes `j` or `n`.") == named
    later = explained(late, find("ls_numba_unsigned"), _WHILE.format(test=test, body=body), right=2).meaning
    assert "The loop `" not in later


def test_a_numba_launch_has_threads() -> None:
    """Two numbers in its brackets are right, so they do not explain why it is slow."""
    late = Failure("timeout", "The run did not end within 15 s and was stopped.")
    source = (
        _SLOW.format(body=_BLOCK, grid="4, 1024").replace("triton.jit", "cuda.jit").replace("vector_add", "ls_open")
    )
    for text in (source, f"import triton\n{source}"):
        assert "Triton" not in explained(late, find("ls_open"), text, right=3).meaning


def test_advice_names_no_other_language() -> None:
    """Only Triton has masks."""
    crash = Failure("crash", "The process that ran it crashed: it accessed memory that is not its own.")
    assert "mask" in explained(crash, find("softmax")).advice
    assert "mask" not in explained(crash, find("ls_cupy_baseline")).advice


def test_crashes_and_exits_are_told_apart() -> None:
    """A segmentation fault is an access far outside; a submission that exits gets different advice."""
    crash = explained(Failure("crash", "The process that ran it crashed: it accessed memory that is not its own."))
    exited = explained(Failure("crash", "The process that ran it ended itself (exit status 0) before it answered."))

    assert "bounds" in crash.advice
    assert "notebook is not affected" in crash.meaning
    assert "os._exit" in exited.advice


def test_the_judges_own_advice_comes_first() -> None:
    """Advice from the failure is not replaced."""
    failure = Failure("exception", "NameError: name 'tl' is not defined", advice="Do this.")

    assert explained(failure).advice == "Do this."


@pytest.mark.parametrize("kind", ["unusable", "not_written", "compile", "exception", "crash", "illegal_access",
                                  "fails_on_gpu", "timeout", "limit", "implausible", "wrong_answer",
                                  "not_simulated", "not_asked"])  # fmt: skip
def test_every_kind_has_a_title(kind: str) -> None:
    """Every kind of failure has a title."""
    assert explained(Failure(kind, "x")).title  # type: ignore[arg-type]


def test_every_kind_of_the_verdict_is_tested() -> None:
    """A new kind of failure must be added here."""
    (marker,) = [mark for mark in test_every_kind_has_a_title.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert set(marker.args[1]) == set(get_args(FailureKind))


def test_a_limit_says_why_there_is_one_and_what_to_do() -> None:
    """The message names the limit; the text around it explains its purpose and accuses nobody."""
    told = explained(Failure("limit", "It held 5 GB of memory and was stopped."))

    assert "the next" in told.meaning
    assert "Use only what the exercise needs" in told.advice


def test_an_implausible_time_is_not_called_cheating() -> None:
    """The judge may be mistaken, so the text is about a review."""
    told = explained(Failure("implausible", "x"))
    words = f"{told.title} {told.meaning} {told.advice}".lower()

    assert "review" in words
    assert not {"cheat", "forge", "fake", "fraud"} & set(words.replace(",", " ").split())


@pytest.mark.timeout(20)
def test_a_line_without_end_is_looked_at_for_its_beginning_only():
    """The worker supplies the line; searching 64 kB of it for a pointer took half a minute."""
    source = "def vector_add(x, y, out):\n    " + "ptr" * 100_000 + " = 1"
    found = explained(
        Failure("exception", "TypeError: 'tensor' object does not support item assignment", 2), None, source
    )
    assert found.line == 2
