"""The exercises by id. Adding one: its module here, one line below, its notebook."""

from __future__ import annotations

from grader.errors import UnknownExercise
from grader.exercise import Exercise
from grader.exercises.audit import AUDIT
from grader.exercises.fuse import FUSE
from grader.exercises.grayscale import GRAYSCALE
from grader.exercises.ladder_cupy import (
    LS_CUPY_BASELINE,
    LS_CUPY_CACHED,
    LS_CUPY_FASTMATH,
    LS_CUPY_FATBIN,
    LS_CUPY_LAUNCH_BOUNDS,
    LS_CUPY_TYPED,
)
from grader.exercises.leaky_relu_op import LEAKY_RELU_OP
from grader.exercises.ls_numba import (
    LS_NUMBA_BASELINE,
    LS_NUMBA_CACHED,
    LS_NUMBA_FASTMATH,
    LS_NUMBA_REGISTERS,
    LS_NUMBA_TYPED,
)
from grader.exercises.ls_open import LS_OPEN
from grader.exercises.matmul import MATMUL
from grader.exercises.matmul_leaky_relu import MATMUL_LEAKY_RELU
from grader.exercises.matmul_open import MATMUL_OPEN
from grader.exercises.mean_cuda import MEAN_CUDA
from grader.exercises.mean_triton import MEAN_TRITON
from grader.exercises.periodogram_numpy import PERIODOGRAM_NUMPY
from grader.exercises.predict_ms import PREDICT_MS
from grader.exercises.softmax import SOFTMAX
from grader.exercises.square_matrix import SQUARE_MATRIX
from grader.exercises.time_gpu import TIME_GPU
from grader.exercises.trace_facts import TRACE_FACTS
from grader.exercises.transpose import TRANSPOSE
from grader.exercises.unblock import UNBLOCK
from grader.exercises.vector_add import VECTOR_ADD
from grader.exercises.vector_width import VECTOR_WIDTH
from grader.exercises.widen import WIDEN

__all__ = ["EXERCISES", "find"]

_IN_ORDER = (  # of the course
    TIME_GPU,
    TRACE_FACTS,
    UNBLOCK,
    PREDICT_MS,
    FUSE,
    AUDIT,
    SQUARE_MATRIX,
    GRAYSCALE,
    TRANSPOSE,
    MEAN_CUDA,
    LEAKY_RELU_OP,
    VECTOR_ADD,
    MEAN_TRITON,
    SOFTMAX,
    MATMUL,
    MATMUL_LEAKY_RELU,
    MATMUL_OPEN,
    VECTOR_WIDTH,
    WIDEN,
    PERIODOGRAM_NUMPY,
    LS_NUMBA_BASELINE,
    LS_NUMBA_CACHED,
    LS_NUMBA_TYPED,
    LS_NUMBA_FASTMATH,
    LS_NUMBA_REGISTERS,
    LS_CUPY_BASELINE,
    LS_CUPY_CACHED,
    LS_CUPY_TYPED,
    LS_CUPY_FASTMATH,
    LS_CUPY_FATBIN,
    LS_CUPY_LAUNCH_BOUNDS,
    LS_OPEN,
)
EXERCISES: dict[str, Exercise] = {exercise.id: exercise for exercise in _IN_ORDER}


def find(exercise_id: str) -> Exercise:
    """The exercise with this id.

    Raises:
        UnknownExercise: there is none; the message lists those that there are.
    """
    try:
        return EXERCISES[exercise_id]
    except KeyError:
        known = ", ".join(EXERCISES)
        raise UnknownExercise(f"There is no exercise {exercise_id!r}. The exercises are: {known}.") from None
