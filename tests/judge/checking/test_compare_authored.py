"""Errors of an exercise's own functions name its file, and never the submission."""

from dataclasses import replace

import pytest
import torch

from grader.errors import MachineLacks, UnusableExercise
from grader.exercise import Suspect
from grader.exercises import find
from grader.judge.checking.buffers import Buffers
from grader.judge.checking.compare import authored

SOFTMAX = find("softmax")
CASE = SOFTMAX.simulator_cases[0]


@pytest.fixture(scope="module")
def buffers():
    return Buffers("simulator")


def wrong_name(inputs):
    return inputs["X"]


def flattened(inputs):
    return inputs["x"].flatten()[:-1]


def not_a_number(inputs):
    return inputs["x"] * float("nan")


@pytest.mark.parametrize(
    ("oracle", "said"),
    [
        (wrong_name, f"The oracle fails in the case '{CASE.name}': .*test_compare_authored.py, line .*: KeyError: 'X'"),
        (flattened, "The oracle fails .*ValueError: it returns the shapes .* and the outputs have"),
        (not_a_number, f"The oracle gives NaN in the case '{CASE.name}', so that nothing can be right"),
    ],
)
def test_an_oracle_that_fails_is_the_authors_to_fix(buffers, oracle, said):
    """Wrong names, wrong shapes and NaN give a sentence with the case."""
    exercise = replace(SOFTMAX, oracle=oracle)
    layout = buffers.lay(CASE)
    buffers.fill(layout)
    buffers.poison(layout)
    with pytest.raises(UnusableExercise, match=said):
        buffers.check(layout, exercise)


def test_a_draw_that_forgets_an_input_is_the_authors_to_fix(buffers):
    """Every input must be drawn: the memory holds those of another case."""
    with pytest.raises(UnusableExercise, match=r"`draw` fails in the case .*KeyError: 'x'"):
        buffers.fill(buffers.lay(CASE), lambda case, source, machine: {})


def test_an_author_can_try_every_suspect(buffers):
    """Also those that no output so far has reached."""
    layout = buffers.lay(CASE)
    buffers.fill(layout)
    buffers.poison(layout)
    buffers.try_suspects(layout, SOFTMAX)
    broken = replace(SOFTMAX, suspects=(*SOFTMAX.suspects, Suspect("the sentence", wrong_name)))
    with pytest.raises(UnusableExercise, match=r"The suspect “the sentence” fails in the case .*KeyError: 'X'"):
        buffers.try_suspects(layout, broken)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        MemoryError(),
        MachineLacks("no memory"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_the_machine_stays_what_it_is(error):
    """If memory is short, the exercise is not to blame."""
    with pytest.raises(type(error)), authored("The oracle", CASE):
        raise error
