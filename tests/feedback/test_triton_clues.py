"""Bugs of Triton's launches that a cell's text shows."""

from __future__ import annotations

import ast

import pytest

from grader.feedback.facts import clues_in
from grader.feedback.launch_clues import cut_addresses, stray_access, wrong_result

SUM = """
@TUNED
@triton.jit
def sum_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)CONVERTED
    at = row * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n)))

@triton.jit
def copy_kernel(x_ptr, out_ptr, n):
    tl.store(out_ptr, tl.load(x_ptr))

def mean(x, out):
    total = MADE
    sum_kernel[(8,)](x, total, x.numel(), BLOCK=1024)
    copy_kernel[(1,)](ARGUMENTS)
"""


def cell(
    made: str = "torch.zeros(1)", tuned: str = "wrapped", arguments: str = "x, out, 1", converted: str = ""
) -> ast.Module:
    words = {"MADE": made, "TUNED": tuned, "ARGUMENTS": arguments, "CONVERTED": converted}
    text = SUM
    for word, value in words.items():
        text = text.replace(word, value)
    return ast.parse(text)


@pytest.mark.parametrize(
    ("made", "named"),
    [("torch.empty(1)", True), ("torch.empty_like(out)", True), ("torch.zeros(1)", False),
     ("torch.empty(1); total.zero_()", False), ("torch.empty(1).zero_()", False)],
)  # fmt: skip
def test_scratch_that_is_added_to_must_be_set_to_0(made: str, named: bool) -> None:
    """`torch.empty` holds anything. A tensor that is filled later is not named."""
    assert ("`total`, which comes from `torch.empty` and can hold any value" in wrong_result(cell(made))) is named


@pytest.mark.parametrize(
    ("tuned", "named"),
    [("triton.autotune(configs=C, key=K)", True),
     ('triton.autotune(configs=C, key=K, reset_to_zero=["total_ptr"])', False),
     ("triton.autotune([triton.Config({}, pre_hook=clear)], K)", False), ("triton.heuristics(H)", False)],
)  # fmt: skip
def test_a_tuned_kernel_that_adds_must_be_reset(tuned: str, named: bool) -> None:
    """Each timed run adds to what the last one left."""
    assert ("`triton.autotune` runs `sum_kernel` many times" in wrong_result(cell(tuned=tuned))) is named


@pytest.mark.parametrize(
    ("arguments", "named"),
    [("out, x, 1", True), ("out_ptr=x, x_ptr=out, n=1", True), ("x, out, 1", False), ("x, total, 1", False),
     ("x, x, 1", False)],
)  # fmt: skip
def test_exchanged_arguments_are_named(arguments: str, named: bool) -> None:
    """The names of the launch are compared with the kernel's, as `x` with `x_ptr`."""
    found = stray_access(cell(arguments=arguments))
    assert (found is not None and "they are exchanged" in found[0]) is named


@pytest.mark.parametrize(("converted", "named"), [(".to(tl.int8)", True), (".to(tl.int64)", False), ("", False)])
def test_a_narrow_number_of_a_program_is_named(converted: str, named: bool) -> None:
    """An int8 ends at 127."""
    found = stray_access(cell(converted=converted))
    assert (found is not None and "becomes an `int8`, which ends at 127" in found[0]) is named


@pytest.mark.parametrize(
    ("line", "named"),
    [("columns, rows = x.shape", True), ("rows, columns = x.shape", False), ("width, height = out.shape", False),
     ("columns, rows = x.stride()", False)],
)  # fmt: skip
def test_a_shape_that_is_unpacked_the_wrong_way_is_named(line: str, named: bool) -> None:
    """The number of rows comes first. An output may be transposed."""
    assert ("the number of rows comes first" in wrong_result(ast.parse(f"def f(x, out):\n    {line}"))) is named


@pytest.mark.parametrize(("line", "named"), [("out = x * x", True), ("out = out.view(-1)", False)])
def test_another_tensor_for_out_is_named(line: str, named: bool) -> None:
    """A view has the memory of `out`."""
    assert clues_in(f"def f(x, out):\n    {line}", "f").rebinds_out is named


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ("pass", True),
        ("f.argtypes = [c_void_p]", False),
        ("call = lambda x: f(c_void_p(x))", False),
        ("call = lambda x: f(ctypes.c_ulonglong(x))", False),
        ("f.restype = ctypes.c_char_p", True),
    ],
)
def test_addresses_need_a_declared_type(declared: str, named: bool) -> None:
    """Without one, ctypes passes an `int`."""
    cell = ast.parse(f"f = ctypes.CDLL(path).f\n{declared}\nf(x.data_ptr())")
    assert (cut_addresses(cell, ['extern "C" void f(const float* x) {}']) is not None) is named
