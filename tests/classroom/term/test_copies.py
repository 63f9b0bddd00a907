"""Tests of grader.classroom.term.copies: what counts as the same program, and what does not."""

from __future__ import annotations

import pytest

from grader.classroom.term.copies import find_copies, program_fingerprint
from tests.classroom.conftest import ASSIGNMENT, Classroom, change

PROGRAM = '''
import triton

@triton.jit
def kernel(pointer, size, BLOCK: "tl.constexpr"):
    """Adds one."""
    offsets = triton.program_id(0) * BLOCK + triton.arange(0, BLOCK)  # of this program
    triton.store(pointer + offsets, triton.load(pointer + offsets, mask=offsets < size) + 1, mask=offsets < size)

def softmax(x, out):
    kernel[(x.shape[0],)](x, x.numel(), BLOCK=128)
'''
RENAMED = """
import triton

def softmax(a, result):
    add[(a.shape[0],)](a, a.numel(), BLOCK=128)

@triton.jit
def add(p, n, BLOCK: "tl.constexpr"):
    at = triton.program_id(0) * BLOCK + triton.arange(0, BLOCK)
    # mine
    triton.store(p + at, triton.load(p + at, mask=at < n) + 1, mask=at < n)
"""
CUDA = 'source = """\n__global__ void scale(float* %s, int n) { // %s\n  %s[threadIdx.x] *= 2; }\n"""\n'
TAIL = "def f(x, out):\n    g(h(x), h(out), x + out, [x, out, x, out], {x: out}, x[out], x.a, out.b, x.c(out), -x)\n"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (PROGRAM, RENAMED, True),
        (PROGRAM, PROGRAM.replace("128", "256"), False),
        (PROGRAM, PROGRAM.replace("+ 1", "- 1"), False),
        (PROGRAM, PROGRAM.replace("arange", "cumsum"), False),
        (CUDA % ("a", "x", "a") + TAIL, CUDA % ("b", "other", "b") + TAIL, True),
        (CUDA % ("a", "x", "a") + TAIL, (CUDA % ("a", "x", "a") + TAIL).replace("float", "int"), False),
    ],
    ids=["renamed", "constant", "operator", "function", "CUDA renamed", "CUDA type"],
)
def test_names_comments_and_order_do_not_count(one: str, other: str, same: bool) -> None:
    """Everything else does: constants, operators, calls of libraries, types."""
    assert program_fingerprint(one) is not None
    assert (program_fingerprint(one) == program_fingerprint(other)) is same


@pytest.mark.parametrize(
    "text", [PROGRAM, "x = 1", "def f(:", "", "\0"], ids=["stub", "short", "syntax", "empty", "zero"]
)
def test_programs_that_say_nothing(text: str) -> None:
    """The stub's own statements, very short programs and those that do not parse are in no group."""
    assert program_fingerprint(text, PROGRAM) is None


def test_a_comment_that_does_not_end_is_the_rest() -> None:
    """A search for the end of each of many would take hours."""
    many = "/* " * 20_000
    one = CUDA % ("a", "x", "a") + f'more = """\n{many}"""\n' + TAIL
    assert program_fingerprint(one) is not None
    assert program_fingerprint(one) == program_fingerprint(one.replace(many, "/* other"))


def test_groups_of_a_class(classroom: Classroom) -> None:
    """Equal texts are one group, equal programs another; stubs are none."""
    for student, text in (("ann", PROGRAM), ("bob", PROGRAM), ("cyd", RENAMED), ("dan", PROGRAM.replace("1", "2"))):
        classroom.hand_in(student, change("softmax", source=text))
    for student in ("eve", "fay"):
        classroom.hand_in(student, lambda notebook: None)
    found = find_copies(classroom.folder, ASSIGNMENT)
    assert [(group.exercise, group.same_text, group.students) for group in found.groups] == [
        ("softmax", True, ("ann", "bob")),
        ("softmax", False, ("ann", "bob", "cyd")),
    ]
    assert "same text: ann, bob" in found.to_text()
