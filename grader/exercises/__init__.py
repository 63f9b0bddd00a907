"""The exercises by id: the package's, and those of the course folder at hand (`grader.exercises.found`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module

from grader.errors import UnknownExercise
from grader.exercise import Exercise
from grader.exercises import found

_MODULES = """
    profiling.time_gpu profiling.trace_facts profiling.unblock profiling.name_cause profiling.predict_ms profiling.fuse
    profiling.audit
    load_inline.square_matrix load_inline.grayscale load_inline.transpose load_inline.mean_cuda
    load_inline.leaky_relu_op load_inline.matmul_tiled
    triton.vector_add triton.mean_triton triton.softmax triton.outer_product triton.matmul triton.softmax_long
    triton.attention load_inline.vector_width triton.widen
    numba_cupy.periodogram_numpy numba_cupy.ls_numba numba_cupy.ls_cupy numba_cupy.ls_open numba_cupy.ls_stars
"""  # in the order of the course; the exercise `matmul` is `MATMUL` in its module
CHAPTERS = {  # the folder of each chapter -> its title
    "01_profiling": "1. Find where the time goes",
    "02_load_inline": "2. Write CUDA C++ and call it from PyTorch",
    "03_triton": "3. Write blocks, not threads",
    "04_numba_cupy": "4. Climb from Python to the hardware",
}
PACKAGED: dict[str, Exercise] = {
    each.id: each
    for name in _MODULES.split()
    for constant, each in vars(import_module(f"{__name__}.{name}")).items()
    if isinstance(each, Exercise) and constant == each.id.upper()
}


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
