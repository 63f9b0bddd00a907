"""The report says that an earlier call left something behind only if other processes show it."""

import pytest

from grader.exercises import find
from grader.feedback.report import as_text
from tests.judge.submissions import VECTOR_ADD, changed

LEFT = "Something is left from that call"
AGAIN = "1,025 elements"  # the case of `vector_add` that is called again
CALLS = len(find("vector_add").simulator_cases)


def _wrong_in(path, condition):
    """The calls in all processes, except the one that compiles, are counted in a file; some give one too much."""
    counted = f"""
    if not out.is_meta:
        with open({str(path)!r}, "a") as calls:
            calls.write("1")
            number = calls.tell()
        if {condition}:
            out += 1
"""
    return VECTOR_ADD.rstrip() + counted


@pytest.mark.parametrize("condition", [f"number == {CALLS + 1}", f"number > {CALLS}"])
def test_a_second_result_that_is_wrong_by_itself_is_an_ordinary_failure(judge, tmp_path, condition):
    """It is wrong once, as if by chance, or in all later calls, also in other processes: nothing is left."""
    source = _wrong_in(tmp_path / "calls", condition)
    verdict = judge.grade(source, "vector_add")
    report = as_text(verdict, source)
    assert (verdict.status, [case.name for case in verdict.cases if not case.passed]) == ("failed", [AGAIN])
    assert len(verdict.cases) == CALLS
    assert LEFT not in report
    assert "called again" not in report


def test_a_second_result_that_is_wrong_in_each_process_shows_that_something_is_left(judge):
    """A counter that is kept from call to call."""
    kept = changed(VECTOR_ADD, "BLOCK=1024)", "BLOCK=1024)\n    out += calls.get(n, 0)\n    calls[n] = 1")
    source = changed(kept, "def vector_add", "calls = {}\n\n\ndef vector_add")
    verdict = judge.grade(source, "vector_add")
    assert [case.name for case in verdict.cases if not case.passed] == [f"{AGAIN}, called again"]
    assert LEFT in " ".join(as_text(verdict, source).split())


def test_a_case_that_is_wrong_by_chance_after_another_of_its_shape_is_an_ordinary_failure(judge, tmp_path):
    """Two cases of `mean_triton` have 775 elements; the second is wrong in this process alone, and only once."""
    path = tmp_path / "calls"
    source = f"""

import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.sum(sums) / n)


def mean_triton(x, out):
    kernel[(1,)](x, out, x.numel(), BLOCK=4096)
    if not out.is_meta:
        with open({str(path)!r}, "a") as calls:
            calls.write("1")
            if calls.tell() == 4:
                out += 1
"""
    verdict = judge.grade(source, "mean_triton")
    first = next(case for case in verdict.cases if not case.passed)
    assert first.name == "775 elements, each of them 1"
    assert first.mismatch.suspect == "" or LEFT not in first.mismatch.suspect
    assert LEFT not in as_text(verdict, source)
