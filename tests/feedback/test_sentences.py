"""Sentences that name the bug: what differs, where, and the question that leads to its cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from grader.exercise import Array, Case
from grader.exercises import find
from grader.feedback.facts import Facts, clues_in
from grader.feedback.sentences import describe, sentences, sentences_from
from grader.feedback.summary import summarize
from grader.judge.checking import buffers as buffers_module
from grader.judge.checking.buffers import Buffers
from grader.verdict import Mismatch, Verdict
from tests.feedback.verdicts import SIMULATOR, make

SOFTMAX, VECTOR_ADD, SQUARE = find("softmax"), find("vector_add"), find("square_matrix")


def vector(size: int, low: int, high: int, wrong: int | None = None, **facts: object) -> Mismatch:
    """A vector that is wrong from `low` to `high`."""
    wrong = high - low + 1 if wrong is None else wrong
    base = Mismatch("out", (size,), wrong, size, (low,), "0", "1.7", (low,), (high,), 1.7)
    return replace(base, **facts)  # type: ignore[arg-type]


def matrix(shape: tuple[int, int], low: tuple[int, int], high: tuple[int, int], **facts: object) -> Mismatch:
    """A matrix that is wrong in the rectangle from `low` to `high`."""
    wrong = (high[0] - low[0] + 1) * (high[1] - low[1] + 1)
    base = Mismatch("out", shape, wrong, shape[0] * shape[1], low, "0", "1.7", low, high, 1.7)
    return replace(base, **facts)  # type: ignore[arg-type]


def unwritten(mismatch: Mismatch) -> Mismatch:
    return replace(mismatch, unwritten=mismatch.wrong, got="never written")


def test_the_tail_of_a_row() -> None:
    """The example of the design: a wrong last block of each row asks whether the tail is masked."""
    said = describe(matrix((4, 140), (0, 128), (3, 139)), exercise=SOFTMAX)

    assert said == (
        "48 of 560 elements differ, all in the last partial block of each row; first at (0, 128): got 0.0, expected "
        "1.7. Is the tail masked? The last block extends past the end."
    )


def test_the_one_number_of_an_output() -> None:
    """If there is only one element, the question does not ask to choose one of several."""
    said = describe(vector(1, 0, 0), exercise=find("mean_triton"))

    assert "The only element of `out` differs" in said
    assert "which inputs does its result depend on" in said
    assert "Every element" not in said
    assert "Every element differs, so trace one" in describe(vector(64, 0, 63), exercise=VECTOR_ADD)


def test_elements_that_nobody_wrote() -> None:
    """If the tail was never written, the question is about the grid, in the language of the exercise."""
    tail = unwritten(vector(1000, 976, 999))

    assert describe(tail, exercise=VECTOR_ADD).startswith(
        "24 of 1000 elements were never written, the last 24; first at 976. Is the grid rounded up? `triton.cdiv"
    )
    assert "`(n + block - 1) / block`" in describe(tail, exercise=SQUARE)


def test_a_mask_that_is_one_too_strict() -> None:
    """If the unwritten last element does not start a block, the mask is wrong, not the grid."""
    assert "`offsets < n`" in describe(unwritten(vector(127, 126, 126)), exercise=VECTOR_ADD)
    assert "grid" in describe(unwritten(vector(1025, 1024, 1024)), exercise=VECTOR_ADD)
    each = [(number, unwritten(vector(n, n - 1, n - 1))) for number, n in enumerate((1, 127, 1024, 1025, 98_432))]
    assert "`offsets < n`" in said_of(verdict_on("vector_add", *each))


@pytest.mark.parametrize(
    ("mismatch", "where", "asks"),
    [
        (unwritten(vector(98_432, 1024, 98_431)), "every one after the first 1024", "`program_id`"),
        (unwritten(vector(1000, 1, 999)), "every one but the first", "`program_id * BLOCK_SIZE"),
        (unwritten(vector(1000, 0, 999)), "All 1000 elements were never written", "launched"),
        (vector(1000, 0, 0), "1 of 1000 elements differs, only the first; at 0", "start at 0"),
        (vector(1000, 0, 99), "the first 100", "start at 0"),
        (vector(1000, 300, 400), "all from index 300 to 400", "by hand"),
        (vector(1000, 3, 999, wrong=100), "spread from index 3 to 999 of 999", "by hand"),
        (vector(1025, 1024, 1024), "the last one; at 1024: got 0.0", "tail masked"),
        (vector(64, 48, 63), "the last 16", "Only the end"),
        (vector(1, 0, 0), "The only element of `out` differs: got 0.0, expected 1.7.", "by hand"),
        (matrix((8, 100), (1, 0), (7, 99)), "in every row but the first", "`program_id` times the stride"),
        (matrix((8, 100), (0, 0), (0, 99)), "all in row 0", "Only the start"),
        (matrix((8, 100), (7, 0), (7, 99)), "all in the last row", "every row"),
        (matrix((8, 100), (5, 0), (7, 99)), "all in the last 3 rows", "every row"),
        (matrix((8, 100), (2, 0), (3, 99)), "all in rows 2 to 3", "by hand"),
        (matrix((8, 100), (0, 97), (7, 99)), "all in the last 3 columns", "Only the end"),
        (matrix((8, 100), (0, 0), (7, 0)), "all in column 0", "Only the start"),
        (matrix((8, 100), (0, 0), (7, 63)), "all in the first 64 columns", "Only the start"),
        (matrix((8, 100), (3, 96), (3, 99)), "all in the last partial block of row 3", "tail masked"),
        (matrix((37, 53), (26, 0), (36, 52), wrong=576, first_index=(26, 7)), "all from (26, 7)", "middle of a row"),
        (unwritten(matrix((8, 100), (0, 64), (7, 99))), "never written", "cover the whole row"),
        (unwritten(matrix((8, 100), (4, 0), (7, 99))), "never written", "a program for every row"),
        (unwritten(matrix((8, 100), (1, 0), (7, 99))), "never written", "depend on `program_id`"),
    ],
)
def test_where_it_is_wrong_decides_what_is_asked(mismatch: Mismatch, where: str, asks: str) -> None:
    """Each pattern has its phrase and its question."""
    said = describe(mismatch, exercise=SOFTMAX)

    assert where in said
    assert asks in said


def test_scattered_rows_are_not_called_every_row() -> None:
    """Every other row being wrong is not "every row but the first"."""
    said = describe(matrix((16, 100), (1, 0), (15, 99), wrong=800), exercise=SOFTMAX)

    assert "every row" not in said.split(".")[0]


def verdict_on(exercise_id: str, *wrong: tuple[int, Mismatch]) -> Verdict:
    """A simulated verdict in which the cases with these numbers are wrong."""
    base = make(exercise_id, SIMULATOR)
    cases = list(base.cases)
    for number, mismatch in wrong:
        cases[number] = replace(cases[number], passed=False, mismatch=mismatch)
    return replace(base, status="failed", points=0.0, cases=tuple(cases))


def said_of(verdict: Verdict, source: str = "") -> str:
    """The sentences of the report, with the name of the case that they are about."""
    summary = summarize(verdict, source)
    assert summary.failing is not None
    return f"{summary.failing.name}: {' '.join(summary.sentences)}"


def test_one_program_for_all_rows() -> None:
    """If only row 0 is written, the report describes the case without padding and does not mention the stride."""
    said = said_of(verdict_on(
        "softmax",
        (1, unwritten(matrix((3, 128), (1, 0), (2, 127)))),
        (7, unwritten(matrix((29, 200), (1, 0), (28, 199)))),
    ))  # fmt: skip

    assert said.startswith("3 × 128:")
    assert "Only row 0 was written: is there one program per row" in said
    assert "stride" not in said


def test_a_block_shorter_than_a_row() -> None:
    """If each row is written up to a power of two, the block does not hold a row."""
    cut = matrix((3, 4096), (0, 0), (2, 4095), unwritten=3 * 3072)
    mixed = matrix((3, 4096), (0, 0), (2, 4095), unwritten=3 * 3000)

    said = said_of(verdict_on("softmax", (8, cut)))
    assert "Columns from 1024 on were never written: does the block hold a whole row?" in said
    assert "by hand" not in said
    assert "by hand" in said_of(verdict_on("softmax", (8, mixed)))


def test_x_and_y_swapped() -> None:
    """A row and a column both lack their ends, and no matrix lacks rows and columns at once."""
    row, column = unwritten(matrix((1, 300), (0, 32), (0, 299))), unwritten(matrix((300, 1), (8, 0), (299, 0)))
    rows = unwritten(matrix((65, 49), (56, 0), (64, 48)))
    one_block = unwritten(matrix((65, 49), (0, 0), (64, 48), wrong=65 * 49 - 8 * 32))
    asks = "Does x go with the width and y with the height, both in the kernel and in the grid?"

    assert asks in said_of(verdict_on("square_matrix", (3, row), (4, column), (5, rows)))
    assert asks not in said_of(verdict_on("square_matrix", (3, row), (4, column), (5, one_block)))
    assert asks not in said_of(verdict_on("square_matrix", (3, row)))


def test_blocks_that_overlap() -> None:
    """Columns up to a block and one or half a block for each further one: the index is wrong, not the grid."""
    narrow, wide = unwritten(matrix((37, 53), (0, 33), (36, 52))), unwritten(matrix((1, 300), (0, 41), (0, 299)))
    rounded = unwritten(matrix((37, 53), (0, 32), (36, 52)))
    half, wide_half = unwritten(matrix((37, 53), (0, 40), (36, 52))), unwritten(matrix((1, 300), (0, 160), (0, 299)))
    said = said_of(verdict_on("square_matrix", (2, narrow), (3, wide)))

    assert "Neighbouring blocks overlap" in said_of(verdict_on("square_matrix", (2, half), (3, wide_half)))
    assert "Is the grid rounded up in x" in said_of(verdict_on("square_matrix", (2, half)))
    assert "a block begins at `blockIdx.x * blockDim.x`" in said
    assert "rounded up" not in said
    assert "Is the grid rounded up in x" in said_of(verdict_on("square_matrix", (2, rounded)))
    fewer, wide_fewer = unwritten(matrix((37, 53), (0, 32), (36, 52))), unwritten(matrix((1, 300), (0, 152), (0, 299)))
    assert "overlap" not in said_of(verdict_on("square_matrix", (2, fewer), (3, wide_fewer)))  # 8 for each 16 columns
    assert "Neighbouring programs overlap" in said_of(verdict_on("vector_add", (2, unwritten(vector(1024, 513, 1023)))))
    assert "overlap" not in said_of(verdict_on("vector_add", (2, unwritten(vector(1024, 512, 1023)))))


def test_nothing_was_written() -> None:
    """If no case has a single element, x and y are not said to be exchanged."""
    sizes = ((1, 1), (3, 3), (37, 53), (1, 300), (300, 1), (65, 49))
    wrong = [(at, unwritten(matrix(size, (0, 0), (size[0] - 1, size[1] - 1)))) for at, size in enumerate(sizes)]
    said = said_of(verdict_on("square_matrix", *wrong))

    assert "Nothing was written to `out`, in any case." in said
    assert "width" not in said


def test_zeros_alone() -> None:
    """An output of zeros alone is called that, but not one with a few zeros."""
    assert "The output is all zeros" in describe(vector(100, 0, 99, zeros=100), exercise=VECTOR_ADD)
    assert "all zeros" not in describe(vector(100, 0, 99, zeros=99), exercise=VECTOR_ADD)


def test_a_bounds_check_in_one_direction() -> None:
    """A matrix that is written past its end asks for both comparisons."""
    mismatch = Mismatch("out", (3, 3), 0, 9, outside=29, outside_first_offset=9)

    assert "check both `row < height` and `column < width`" in describe(mismatch, exercise=SQUARE)


def test_an_empty_grid() -> None:
    """Small cases that nobody wrote, and a last block that is missing: the division was rounded down."""
    said = said_of(verdict_on(
        "vector_add", (1, unwritten(vector(127, 0, 126))), (4, unwritten(vector(98_432, 98_304, 98_431)))
    ))  # fmt: skip

    assert said.startswith("98,432 elements:")
    assert "as if the grid were empty: was the division rounded down?" in said


_RETURNS = "def vector_add(x, y, out):\n    {}\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [("return x + y", True), ("if x.numel():\n        return x", True), ("return", False), ("return None", False),
     ("return add_kernel[(1,)](x, y, out)", False), ("f = lambda: (yield)", False),
     ("def inner():\n        return x\n    inner()", False), ("return (", False)],
)  # fmt: skip
def test_a_result_that_was_returned(body: str, told: bool) -> None:
    """If a function returns its result and writes nothing, the report says where results belong."""
    said = said_of(verdict_on("vector_add", (1, unwritten(vector(127, 0, 126)))), _RETURNS.format(body))

    assert ("The function returned a value, but the result must be written to `out`." in said) == told
    assert ("Is the kernel launched" in said) == (not told)


_KERNEL = "@triton.jit\ndef k(x_ptr, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + {}\n    {}:\n        pass\n"


@pytest.mark.parametrize(
    ("offsets", "test", "told"),
    [("tl.arange(0, B)", "if i < n", True), ("tl.arange(0, B)", "if n > 3", False), ("1", "if i < n", False),
     ("tl.arange(0, B)", "while i < n", False)],
)  # fmt: skip
def test_a_branch_that_was_meant_as_a_mask(offsets: str, test: str, told: bool) -> None:
    """The report mentions an `if` on a block in a kernel that writes past the end, but not one on a scalar."""
    outside = Mismatch("out", (127,), 0, 127, outside=897, outside_first_offset=127)

    said = said_of(verdict_on("vector_add", (1, outside)), _KERNEL.format(offsets, test))

    assert "Is the store masked?" in said
    assert ("An `if` on a block does not mask it: pass `mask=`." in said) == told


@pytest.mark.parametrize(
    ("shape", "wrong", "outside", "times"),
    [((3, 3), 8, 27, 4), ((3, 3), 9, 9, 2), ((3, 3), 0, 27, 0), ((8, 4), 32, 32, 0), ((3, 3), 8, 26, 0)],
)
def test_a_pointer_to_a_wider_type_is_named(shape: tuple[int, int], wrong: int, outside: int, times: int) -> None:
    """Its elements fill the output more than once. Blocks of threads without a bounds check write multiples of 32."""
    total = shape[0] * shape[1]
    mismatch = Mismatch("out", shape, wrong, total, (0, 1), "0.0", "1.0", (0, 0), (shape[0] - 1, shape[1] - 1),
                        outside=outside, outside_first_offset=total)  # fmt: skip
    said = " ".join(sentences_from(Facts(mismatch, None, find("square_matrix"))))
    assert ("times as many bytes as `out` has" in said) == (times > 0)
    assert not times or f"wrote {times} times" in said


def test_a_suspect_comes_first_and_asks_alone() -> None:
    """A known bug comes first, before the facts, and there is no other guess."""
    known = VECTOR_ADD.suspects[0].sentence
    said = sentences(vector(1000, 0, 999, suspect=known), exercise=VECTOR_ADD)

    assert said[0] == known
    assert len(said) == 2
    assert said[1].startswith("All 1000 elements differ")


@pytest.mark.parametrize(
    ("outside", "where", "apart"),
    [
        (216, "between the rows of `out`", 256),  # by N
        (1232, "between the rows and past the end of `out`", 208),  # by x's stride
    ],
)
def test_rows_that_lie_apart(outside: int, where: str, apart: int) -> None:
    """If only the first row of a padded case is right, the report names the stride once, with its value.

    The number of missing elements equals the number written outside the output.
    """
    case = next(case for case in SOFTMAX.simulator_cases if "padded" in case.name)
    mismatch = matrix((29, 200), (1, 0), (28, 199), not_finite=4368, unwritten=outside, outside=outside,
                      outside_first_offset=200)  # fmt: skip

    said = describe(mismatch, case, SOFTMAX)

    assert said.count("stride") == 1
    assert f"{apart} elements apart" in said
    assert f"{outside} of these were never written." in said
    assert f"wrote {outside} elements {where}." in said


_PADDED = "5 × 100, rows padded to 104 and to 108"
_RUNS_ON = Mismatch("out", (5, 100), 400, 500, (1, 0), "0.307287", "-0.1885", (1, 0), (4, 99), 2.0, not_finite=28,
                    outside=956, outside_first_offset=100)  # fmt: skip


def test_rows_that_run_on_into_others_are_not_about_the_stride() -> None:
    """On a GPU, unmasked rows overwrite each other in any order, so all but the first may be wrong.

    A wrong stride cannot write more elements than there are, and a case without overwritten rows is more telling.
    """
    widen = find("widen")
    case = next(case for case in widen.cases if case.name == _PADDED)

    said = describe(_RUNS_ON, case, widen)
    assert "stride" not in said
    assert "writes past the end of one row overwrite another row" in said
    assert "wrote 956 elements between the rows and past the end of `out`. Is the store masked?" in said
    one_row = Mismatch("out", (1, 4), 0, 4, outside=1020, outside_first_offset=4)
    reported = said_of(verdict_on("widen", (0, one_row), (1, _RUNS_ON)))
    assert reported.startswith("1 × 4: Every element is right")
    assert "1020 elements past the end of `out`. Is the store masked?" in reported
    assert said_of(verdict_on("widen", (1, _RUNS_ON))).endswith("past the end of `out`. Is the store masked?")


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (4, 2, 3, 1, 0), (2, 0, 4, 1, 3), (1, 2, 3, 4, 0)])
def test_whichever_row_is_written_last_the_question_is_about_the_mask(order: tuple[int, ...], monkeypatch: Any) -> None:
    """Rows of 1024 elements over rows of 100, in any order; what was to be read beyond the input is NaN."""
    monkeypatch.setattr(buffers_module, "_HOST_BYTES", 1 << 20)
    widen = find("widen")
    case = next(case for case in widen.cases if case.name == _PADDED)
    buffers = Buffers("simulator")
    layout = buffers.lay(case)
    buffers.fill(layout)
    buffers.poison(layout)
    buffers.hand_over()
    (launch,) = layout.launches
    x, gain, out = (launch[name] for name in ("x", "gain", "out"))
    for row in order:
        read = buffers.arenas["inputs"].bytes_at(x.offset + 4 * 104 * row, 4096).view(torch.float32)
        written = buffers.arenas["outputs"].bytes_at(out.offset + 4 * 108 * row, 4096).view(torch.float32)
        written.copy_(read * buffers._private(gain)[row])

    said = describe(buffers.check(layout, widen), case, widen)
    assert "past the end of `out`. Is the store masked?" in said
    assert "stride" not in said
    assert "each program start at its own row" not in said


def test_a_padded_case_that_fails_from_its_first_row_on_is_not_about_the_stride() -> None:
    """The question is about the stride only if the first row, which needs none, is right."""
    case = next(case for case in SOFTMAX.simulator_cases if "padded" in case.name)

    assert "stride" not in describe(matrix((29, 200), (0, 0), (28, 199)), case, SOFTMAX)
    assert "stride" not in describe(matrix((29, 200), (28, 0), (28, 199)), case, SOFTMAX)


@pytest.mark.parametrize(
    ("offset", "where", "asks"),
    [(-4, "before the start of `out`", "negative"), (29 * 256 - 56, "past the end of `out`", "store masked"),
     (200, "between the rows of `out`", "end of each row")],
)  # fmt: skip
def test_writes_outside_of_the_output(offset: int, where: str, asks: str) -> None:
    """A write around the output is located by its offset, also where rows are padded."""
    arrays = (Array("x", (29, 200), row_padding=56), Array("out", (29, 200), role="out", row_padding=56))
    mismatch = Mismatch("out", (29, 200), 0, 5800, outside=24, outside_first_offset=offset)

    said = describe(mismatch, Case("padded", arrays), SOFTMAX)

    assert said.startswith(f"Every element is right, but the kernel wrote 24 elements {where}.")
    assert asks in said


def test_nan_where_a_number_belongs() -> None:
    """NaN at the end of the data leads to a load that is not masked, NaN among minus infinities to a subtraction."""
    nan = vector(1000, 960, 999, not_finite=40, got="nan")
    holes = next(case for case in SOFTMAX.simulator_cases if case.fill == "minus_inf")

    assert "are NaN or infinite but should be finite" in describe(nan)
    assert "got NaN" in describe(nan)
    assert "every load masked" in describe(nan, exercise=VECTOR_ADD)
    assert "before the read" in describe(nan, exercise=SQUARE)
    assert "infinity minus infinity" in describe(nan, holes, SOFTMAX)


def test_lost_precision() -> None:
    """Values that are nearly right point to a lower precision, not to an index."""
    said = describe(vector(1000, 0, 990, wrong=700, got="1.7003", expected="1.7"), exercise=VECTOR_ADD)

    assert "lower precision than float32" in said


def test_lost_precision_in_float64() -> None:
    """For float64 arrays, float32 is the precision that is too low."""
    exercise = find("ls_numba_typed")
    double = next(case for case in exercise.simulator_cases if case.outputs[0].dtype == "float64")
    said = describe(vector(33, 0, 32, got="1.70000001", expected="1.70000002"), double, exercise)

    assert "a float32 constant or sum" in said
    assert "than float32" not in said


def test_a_kernel_that_writes_nothing_is_asked_for_in_no_other_language() -> None:
    """The launch of a Numba kernel has no triple brackets."""
    said = describe(unwritten(vector(259, 0, 258)), exercise=find("ls_numba_baseline"))

    assert "Is the kernel launched" in said
    assert "<<<" not in said


def test_partly_unwritten_or_not_finite() -> None:
    """Mixed errors are counted separately, in the singular for one."""
    said = sentences(vector(1000, 0, 999, unwritten=1, not_finite=2))

    assert "1 of these was never written." in said
    assert "2 of these are NaN or infinite." in said


def test_three_dimensions() -> None:
    """Outputs of any rank are described."""
    mismatch = Mismatch("out", (4, 5, 6), 3, 120, (1, 2, 3), "0", "1", (1, 2, 3), (1, 2, 5))

    assert "all between (1, 2, 3) and (1, 2, 5); first at (1, 2, 3)" in describe(mismatch)


def test_of_several_outputs_it_is_said_which() -> None:
    """One output needs no name."""
    arrays = (Array("x", (9,)), Array("out", (9,), role="out"), Array("grad_x", (9,), role="out"))
    wrong = replace(vector(9, 3, 5), output="grad_x")
    assert "3 of 9 elements of `grad_x` differ" in describe(wrong, Case("9", arrays), SQUARE)
    assert "3 of 9 elements differ" in describe(wrong, Case("9", arrays[:2]), SQUARE)


def test_answers_are_named_without_a_question_about_masks() -> None:
    """If an exercise asks questions, the sentence names the wrong answer and mentions no kernel."""
    asks = replace(SOFTMAX, backend="torch", answers=("kernel count", "busy share", "longest idle gap (µs)"))
    said = describe(vector(3, 1, 2), exercise=asks)
    assert said == "`busy share`: got 0.0, expected 1.7. 2 of 3 answers are wrong."
    only = describe(vector(1, 0, 0), exercise=replace(asks, answers=("time (ms)",)))
    assert only == "`time (ms)`: got 0.0, expected 1.7."
    in_words = describe(vector(1, 0, 0), exercise=replace(asks, answers=("cause",), answer_words=("launches",)))
    assert in_words == '`cause`: got "launches", expected 1.7.'
    assert "mask" in describe(vector(1000, 900, 999), exercise=SOFTMAX)
    assert "mask" not in describe(vector(1000, 900, 999), exercise=replace(SOFTMAX, backend="torch"))


def test_a_kernel_of_threads_is_not_asked_about_programs() -> None:
    """Numba's and CuPy's kernels are written for threads, as CUDA C++'s are."""
    case = find("ls_numba_baseline")
    said = describe(unwritten(vector(2571, 2560, 2570)), exercise=case)

    assert "blocks are needed" in said
    assert "triton" not in said


_IN_STEP = """
__global__ void total(const float* x, float* out) {
    __shared__ VOLATILE float part[64];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int half = 32; half > 0; half /= 2) { part[threadIdx.x] += part[threadIdx.x + half]; BARRIER }
    }
    if (threadIdx.x == 0) *out = part[0];
}
"""


@pytest.mark.parametrize(
    ("volatile", "barrier", "named"),
    [("volatile", "", True), ("", "", True), ("volatile", "__syncwarp();", False), ("", "__syncwarp();", False)],
)
def test_a_warp_that_is_trusted_to_run_in_step_lacks_syncwarp(volatile: str, barrier: str, named: bool) -> None:
    """Old textbooks write `volatile`; the sentence comes before the exercise's own guess."""
    kernel = _IN_STEP.replace("VOLATILE", volatile).replace("BARRIER", barrier)
    clues = clues_in(f'source = r"""{kernel}"""  # without __syncwarp()', "mean_cuda")
    guess = next(each.sentence for each in find("mean_cuda").suspects if "Is a step missing" in each.sentence)
    wrong = replace(vector(1, 0, 0), suspect=guess)
    said = sentences_from(Facts(wrong, None, find("mean_cuda"), clues))[0]
    assert ("__syncwarp()" in said) is named
    assert ("step missing" in said) is not named
