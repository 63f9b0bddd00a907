"""Requirements for every exercise, present and future."""

import ast
import functools
import inspect
import math
import textwrap
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from grader.authoring.stubs import solution
from grader.errors import UnknownExercise
from grader.exercise import text_of
from grader.exercises import EXERCISES, find
from grader.judge.bench import ProblemSizes
from grader.judge.checking.buffers import FILLS, draw, generator
from grader.judge.checking.compare import suspected
from grader.judge.gpu.ceilings import Machine
from tests.mistakes.corpus import corpus

each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda exercise: exercise.id)


def all_cases(exercise):
    return (*exercise.cases, *exercise.simulator_cases, *exercise.timed_cases, *exercise.plot_cases)


_GOT = "got"
_DRAWS = 3  # of the inputs of a case: some bugs show by chance


def inputs_of(exercise, case):
    """Inputs as drawn by the judge, by name."""
    source = generator("cpu")
    if exercise.draw is not None:
        return dict(exercise.draw(case, source, Machine.measure("simulator")))
    return {array.name: draw(array, case.fill, source) for array in case.inputs}


@each
def test_gates_name_baselines_and_timed_cases_that_exist(exercise):
    """A gate over a case that is never timed cannot be measured."""
    timed = {case.name for case in exercise.timed_cases}
    for gate in exercise.gates:
        assert exercise.baseline(gate.baseline).label
        assert set(gate.cases) <= timed
        assert gate.points > 0


@each
def test_being_right_is_worth_something_and_speed_too(exercise):
    """Points come from cases and gates; there are timed cases if and only if there are gates."""
    assert exercise.correctness_points > 0
    assert (exercise.max_points > exercise.correctness_points) == bool(exercise.gates) == bool(exercise.timed_cases)


@each
def test_cases_call_the_entry_point(exercise):
    """Every case has the parameters' arrays in order, at least one output, a known fill and a unique name."""
    for cases in (exercise.cases, exercise.simulator_cases, exercise.timed_cases, exercise.plot_cases):
        assert len({case.name for case in cases}) == len(cases)
    assert exercise.cases
    assert exercise.simulator_cases
    for case in all_cases(exercise):
        assert exercise.harness or tuple(array.name for array in case.arrays) == exercise.parameters
        assert case.outputs
        assert not exercise.answers or math.prod(case.outputs[0].shape) <= len(exercise.answers)
        assert set(case.fill.split("|")) <= set(FILLS)
        assert exercise.bytes_moved(case) > 0


@each
def test_timed_cases_grow_into_cases_of_the_same_kind(exercise):
    """At twice the size, the oracle's answers have the outputs' shapes and the traffic doubles."""
    for case in exercise.timed_cases:
        small = replace(case, arrays=tuple(_shortened(array) for array in case.arrays))
        grown = small.times(2)
        inputs = {array.name: draw(array, case.fill, generator("cpu")).double() for array in grown.inputs}
        answers = exercise.oracle(inputs)
        shapes = [tuple(answer.shape) for answer in (answers if isinstance(answers, tuple) else (answers,))]
        assert shapes == [array.shape for array in grown.outputs]
        if case.times(2) == case:  # its work goes with more than its bytes: it is long enough as it is
            assert exercise.operations(case) > 10 * exercise.bytes_moved(case)
            continue
        assert 1.5 < exercise.bytes_moved(case.times(2)) / exercise.bytes_moved(case) <= 2


def _shortened(array):
    """About a hundredth of the size along each axis, with the properties that oracles assume."""
    return replace(array, shape=tuple(n if n < 1000 else n // 128 for n in array.shape))


@pytest.mark.parametrize("name", ["square_matrix", "grayscale", "transpose"])
def test_a_grid_with_a_block_for_each_row_reaches_down_to_the_timed_size(name):
    """One block per row: a grid has at most 65,535 blocks in y, even on a GPU with 16 TB/s."""
    machine = SimpleNamespace(copy_gbps=16_000.0, peak_tflops=4_000.0)
    room = SimpleNamespace(fits=lambda case, launches: True)
    (case,) = find(name).timed_cases
    scale = ProblemSizes().scale(find(name), case, machine, room)
    assert scale > 4
    assert case.times(scale).inputs[0].shape[0] <= 65_535


@each
def test_sizes_that_fit_no_block_are_among_the_cases(exercise):
    """On a GPU and in the simulator, some size exceeds 32 and is not a multiple of it, to show a missing mask."""
    for cases in (exercise.cases, exercise.simulator_cases):
        sizes = [size for case in cases for array in case.arrays for size in array.shape]
        assert exercise.backend == "torch" or any(size > 32 and size % 32 for size in sizes)


@each
def test_baselines_stand_on_their_own(exercise):
    """A baseline's source runs in a worker: it must be self-contained and take the entry point's arguments."""
    for baseline in exercise.baselines:
        assert len(inspect.signature(baseline.function).parameters) == len(exercise.parameters)
        if "@triton.jit" in inspect.getsource(baseline.function):  # it wants a file and a GPU; the tests on one run it
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(baseline.function)))
        scope = {"__builtins__": __builtins__, "Any": object}
        exec(compile(tree, "baseline", "exec"), scope)
        if baseline.id == "compile":  # compiling takes half a minute here; the tests on a GPU run it
            continue
        if exercise.backend in ("numba", "cupy") and baseline.harness is None:
            continue  # their simulators are for a whole process, a worker: tests of the ladder hand them in there
        case = exercise.simulator_cases[-1]
        drawn = inputs_of(exercise, case)
        tensors = [drawn[a.name] if a.name in drawn else draw(a, "normal", generator("cpu")) for a in case.arrays]
        function = scope[baseline.function.__name__]
        if harness := baseline.harness or exercise.harness:
            exec(compile(text_of(harness), "harness", "exec"), scope)
            function = functools.partial(scope[harness.__name__], function)
        function(*tensors)


@each
def test_the_last_array_of_what_is_timed_is_an_output(exercise):
    """The judge's own round fills it, to measure how slow the host is."""
    assert all(case.arrays[-1].role == "out" for case in (*exercise.timed_cases, *exercise.plot_cases))


@each
def test_every_suspect_is_recognised_by_its_own_output(exercise):
    """In some case, the output of a suspect's bug leads to that suspect's sentence and no other."""
    handed_in = " ".join(mistake.says for mistake in corpus() if mistake.exercise == exercise.id)
    for suspect in exercise.suspects:
        assert any(
            sentence == suspect.sentence or (sentence == _GOT and suspect.sentence in handed_in)
            for case in (*exercise.simulator_cases, *exercise.cases)
            for number in range(_DRAWS)
            for sentence in _sentences(exercise.id, suspect, case, number)
        ), suspect.sentence


@each
def test_a_suspect_spares_only_cases_in_which_its_bug_does_not_show(exercise):
    """An unknown case name would have no effect, and a case that shows the bug would always rule it out."""
    for suspect in exercise.suspects:
        for cases in (exercise.cases, exercise.simulator_cases) if suspect.spares else ():
            spared = [case for case in cases if case.name in suspect.spares]
            assert spared, suspect.sentence
            drawn = [case for case in spared if not case.measured]  # a measured one needs a GPU
            assert not any(suspect.sentence in _sentences(exercise.id, suspect, case) for case in drawn)
        assert set(suspect.spares) <= {case.name for case in (*exercise.cases, *exercise.simulator_cases)}


@functools.lru_cache(12)
def _drawn(exercise_id, case, number):
    """The inputs, also in double precision, and the outputs that the oracle expects."""
    exercise = find(exercise_id)
    inputs = inputs_of(exercise, case)
    double = {name: value.double() for name, value in inputs.items()}
    answers = exercise.oracle(dict(double))
    return inputs, double, answers if isinstance(answers, tuple) else (answers,)


def _sentences(exercise_id, suspect, case, number=0):
    """The sentences about the outputs of the suspect's bug in this case."""
    inputs, double, answers = _drawn(exercise_id, case, number)
    exercise = find(exercise_id)
    for expected in answers:
        try:
            bug = suspect.output(double | {"expected": expected})
        except KeyError as error:  # it needs the output of a submission
            yield error.args[0]
            continue
        if bug is None or bug.shape != expected.shape or torch.allclose(bug, expected, 1e-3, equal_nan=True):
            continue
        yield suspected(bug, expected, inputs, exercise.suspects)


@each
def test_the_solution_defines_the_entry_point(exercise):
    """The reference solution has a function with the entry's name and parameters."""
    functions = {node.name: node for node in ast.parse(solution(exercise.id)).body if isinstance(node, ast.FunctionDef)}
    assert [argument.arg for argument in functions[exercise.entry].args.args] == list(exercise.parameters)


def test_known_ids_are_found_and_others_rejected_with_a_list():
    """`find` returns the exercise; for an unknown id, the error lists all ids."""
    for exercise_id, exercise in EXERCISES.items():
        assert find(exercise_id) is exercise
        assert exercise.id == exercise_id
    with pytest.raises(UnknownExercise, match="softmax"):
        find("sofmax")


def test_calls_are_queued_ahead_except_if_the_hosts_time_counts():
    """It counts for the two rungs that cache kernels, and for exercises with questions."""
    without = {exercise.id for exercise in EXERCISES.values() if not exercise.head_start}
    questions = {exercise.id for exercise in EXERCISES.values() if exercise.answers}
    assert without == questions | {"ls_numba_cached", "ls_cupy_cached"}
    assert questions >= {"time_gpu", "trace_facts", "predict_ms", "audit"}
