"""The exercises by id. Adding one: its module here, one line below, its notebook."""

from __future__ import annotations

from grader.errors import UnknownExercise
from grader.exercise import Exercise
from grader.exercises.audit import AUDIT
from grader.exercises.fuse import FUSE
from grader.exercises.grayscale import GRAYSCALE
from grader.exercises.leaky_relu_op import LEAKY_RELU_OP
from grader.exercises.mean_cuda import MEAN_CUDA
from grader.exercises.predict_ms import PREDICT_MS
from grader.exercises.softmax import SOFTMAX
from grader.exercises.square_matrix import SQUARE_MATRIX
from grader.exercises.time_gpu import TIME_GPU
from grader.exercises.trace_facts import TRACE_FACTS
from grader.exercises.transpose import TRANSPOSE
from grader.exercises.unblock import UNBLOCK
from grader.exercises.vector_add import VECTOR_ADD

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
    SOFTMAX,
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
