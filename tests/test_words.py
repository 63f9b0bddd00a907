"""Tests of grader.words: untrusted text and kernels' names inside a sentence."""

from __future__ import annotations

import pytest

from grader.feedback.sentences import message_of
from grader.verdict import Failure
from grader.words import harmless, kernel_name, on_one_line


def test_untrusted_text_hides_no_other_text() -> None:
    """An unterminated escape would swallow the lines after it."""
    assert harmless("a\x1b]0;b\n\tc\u202ed") == "a?]0;b\n\tc?d"


def test_a_name_forges_no_line() -> None:
    """Every character that could end a line is replaced."""
    assert on_one_line("x\n  bob 10 of 10\r\ty") == "x bob 10 of 10? y"


@pytest.mark.parametrize("written", [r"\x1b[2J", r"\x9b2J", r"\u202e", r"\ud800"])
def test_an_escape_that_is_written_out_stays_one(written: str) -> None:
    """Triton's errors wrap other text, which is unwrapped: an escape in it must stay spelled out."""
    said = message_of(Failure("exception", f"ValueError('{written}Passed')"))
    assert said.isprintable()
    assert "Passed" in said


def test_a_kernels_name_is_cut_out_of_its_signature() -> None:
    """A long template is cut off, and says so."""
    inner = "at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::MeanOps<float> > >"
    reduce = f"void at::native::reduce_kernel<512, 1, {inner}>(int)"
    assert kernel_name(reduce) == "reduce_kernel<512, 1, ReduceOp<float, func_wrapper_t<float,…"
    assert kernel_name("transpose_kernel(float const*, float*, int, int)") == "transpose_kernel"
    assert kernel_name("void (anonymous namespace)::sums<2>(int)") == "sums<2>"
    assert kernel_name("void at::native::fill<(int)4, (bool)1, (int)-1>(int, float)") == "fill<4, 1, -1>"
    assert kernel_name("Memcpy DtoD (Device -> Device)") == "Memcpy DtoD"
    assert kernel_name("_Z5powerPKfPfii") == "power"
    assert kernel_name("_Z5power6float4Pf") == "power"
    assert kernel_name("_ZN10submission5build12_3clocals_3e5powerB2v1B92cw51c") == "power"
    assert kernel_name("_Z") == "_Z"
