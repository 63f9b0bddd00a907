"""The exercises by id: the package's, and those of the course folder at hand (`grader.exercises.found`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from grader.errors import UnknownExercise
from grader.exercise import Exercise
from grader.exercises import found
from grader.exercises.load_inline.grayscale import GRAYSCALE
from grader.exercises.load_inline.leaky_relu_op import LEAKY_RELU_OP
from grader.exercises.load_inline.matmul_tiled import MATMUL_TILED
from grader.exercises.load_inline.mean_cuda import MEAN_CUDA
from grader.exercises.load_inline.square_matrix import SQUARE_MATRIX
from grader.exercises.load_inline.transpose import TRANSPOSE
from grader.exercises.load_inline.vector_width import VECTOR_WIDTH
from grader.exercises.numba_cupy.ls_cupy import (
    LS_CUPY_BASELINE,
    LS_CUPY_CACHED,
    LS_CUPY_FASTMATH,
    LS_CUPY_FATBIN,
    LS_CUPY_LAUNCH_BOUNDS,
    LS_CUPY_TYPED,
)
from grader.exercises.numba_cupy.ls_numba import (
    LS_NUMBA_BASELINE,
    LS_NUMBA_CACHED,
    LS_NUMBA_FASTMATH,
    LS_NUMBA_REGISTERS,
    LS_NUMBA_TYPED,
    LS_NUMBA_UNSIGNED,
)
from grader.exercises.numba_cupy.ls_open import LS_OPEN
from grader.exercises.numba_cupy.ls_stars import LS_STARS
from grader.exercises.numba_cupy.periodogram_numpy import PERIODOGRAM_NUMPY
from grader.exercises.profiling.audit import AUDIT
from grader.exercises.profiling.fuse import FUSE
from grader.exercises.profiling.name_cause import NAME_CAUSE
from grader.exercises.profiling.predict_ms import PREDICT_MS
from grader.exercises.profiling.time_gpu import TIME_GPU
from grader.exercises.profiling.trace_facts import TRACE_FACTS
from grader.exercises.triton.attention import ATTENTION
from grader.exercises.triton.matmul import MATMUL, MATMUL_LEAKY_RELU, MATMUL_OPEN
from grader.exercises.triton.mean_triton import MEAN_TRITON
from grader.exercises.triton.outer_product import OUTER_PRODUCT
from grader.exercises.triton.softmax import SOFTMAX
from grader.exercises.triton.softmax_long import SOFTMAX_LONG
from grader.exercises.triton.unblock import UNBLOCK
from grader.exercises.triton.vector_add import VECTOR_ADD
from grader.exercises.triton.widen import WIDEN

_IN_ORDER = (  # of the course
    *(TIME_GPU, TRACE_FACTS, UNBLOCK, NAME_CAUSE, PREDICT_MS, FUSE, AUDIT),
    *(SQUARE_MATRIX, GRAYSCALE, TRANSPOSE, MEAN_CUDA, LEAKY_RELU_OP, MATMUL_TILED),
    *(VECTOR_ADD, MEAN_TRITON, SOFTMAX, OUTER_PRODUCT, MATMUL, MATMUL_LEAKY_RELU, MATMUL_OPEN),
    *(SOFTMAX_LONG, ATTENTION, VECTOR_WIDTH, WIDEN),
    *(
        PERIODOGRAM_NUMPY,
        LS_NUMBA_BASELINE,
        LS_NUMBA_CACHED,
        LS_NUMBA_TYPED,
        LS_NUMBA_FASTMATH,
        LS_NUMBA_REGISTERS,
        LS_NUMBA_UNSIGNED,
    ),
    *(LS_CUPY_BASELINE, LS_CUPY_CACHED, LS_CUPY_TYPED, LS_CUPY_FASTMATH, LS_CUPY_FATBIN, LS_CUPY_LAUNCH_BOUNDS),
    *(LS_OPEN, LS_STARS),
)
CHAPTERS = {  # the folder of each chapter -> its title
    "01_profiling": "1. Find where the time goes",
    "02_load_inline": "2. Write CUDA C++ and call it from PyTorch",
    "03_triton": "3. Write blocks, not threads",
    "04_numba_cupy": "4. Climb from Python to the hardware",
}
PACKAGED: dict[str, Exercise] = {exercise.id: exercise for exercise in _IN_ORDER}


class _Exercises(Mapping[str, Exercise]):
    """The package's exercises, then the course folder's, with the class's own gates. Every access looks at the folder
    as it is now.

    Raises UnusableExercise where a module of the course folder, or its `gates.toml`, cannot be used.
    """

    def _all(self) -> dict[str, Exercise]:
        return found.with_class_gates(PACKAGED | found.exercises(PACKAGED))

    def __getitem__(self, exercise_id: str) -> Exercise:
        return self._all()[exercise_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


EXERCISES: Mapping[str, Exercise] = _Exercises()


def find(exercise_id: str) -> Exercise:
    """The exercise with this id.

    Raises:
        UnknownExercise: there is none; the message has the nearest id, or lists the exercises that exist.
        UnusableExercise: a module of the course folder, or its `gates.toml`, cannot be used.
    """
    if exercise_id in PACKAGED and found.gates_file() is None:
        return PACKAGED[exercise_id]
    every = dict(EXERCISES)
    if exercise_id in every:
        return every[exercise_id]
    close = get_close_matches(exercise_id, every, 1)
    known = f"Did you mean {close[0]!r}?" if close else f"The exercises are: {', '.join(every)}."
    raise UnknownExercise(f"There is no exercise {exercise_id!r}. {known} {found.passed_over()}".rstrip())
