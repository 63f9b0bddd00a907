"""The bench `streams` finds honest work with its own streams, and its rounds on one queue."""

import math
from types import SimpleNamespace

from benchmarks.noise import Heard
from benchmarks.streams import _moves, by_queues, on_streams
from grader.exercises import find
from grader.judge.bench import Bench
from tests.honest.corpus import corpus


def heard(peer, switch_us):
    return Heard(peer, 500.0, switch_us, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_work_on_its_own_streams_is_found():
    """It is found in Python and in C++. Work on the current stream, by any name, does not count."""
    names = {text.name for text in on_streams(corpus())}
    assert {"softmax/streams_by_rows.py", "vector_add/own_stream.py", "vector_add/numba_stream.py"} <= names
    assert "square_matrix/streams_in_cpp.py" in names
    assert not {"vector_add/cupy_kernel.py", "vector_add/numba_kernel.py", "square_matrix/nvrtc.py"} & names


def test_rounds_on_one_queue_are_separated_from_those_on_several():
    """They are the submission's, in order; a baseline's do not count."""
    rounds = [heard("submission", number) for number in range(5)]
    mixed = [one for own in rounds for one in (own, heard("baseline", 99.0))]
    assert by_queues(mixed, 6) == {"several_queues_us": [0, 1, 2], "one_queue_us": [3, 4]}
    assert by_queues(mixed, len(mixed))["one_queue_us"] == []


def test_the_move_to_one_queue_is_noted_where_it_happens():
    """The judge's own `take` still gets the source, the exercise, the time left and the number of queues."""
    taken, rounds = [], [heard("submission", 1.0)]
    bench = Bench.__new__(Bench)
    bench.pool = SimpleNamespace(take=lambda *given: taken.append(given) or "loaded")
    exercise = find("softmax")

    with _moves(bench, rounds) as moves:
        assert bench.take("source", exercise, math.inf, False) == "loaded"
        rounds.append(heard("submission", 2.0))
        assert bench.take("source", exercise, 60.0, True) == "loaded"

    assert moves == [2]
    assert taken == [("source", exercise, math.inf, False), ("source", exercise, 60.0, True)]
