"""Which honest work is put on streams of its own, and which of its rounds are on one queue."""

from benchmarks.noise import Heard
from benchmarks.streams import by_queues, on_streams
from tests.honest.corpus import corpus


def heard(peer, switch_us):
    return Heard(peer, 500.0, switch_us, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_work_on_streams_of_its_own_is_found():
    """In Python and in C++; what uses the current stream, by whatever name, makes none."""
    names = {text.name for text in on_streams(corpus())}
    assert {"softmax/streams_by_rows.py", "vector_add/own_stream.py", "vector_add/numba_stream.py"} <= names
    assert "square_matrix/streams_in_cpp.py" in names
    assert not {"vector_add/cupy_kernel.py", "vector_add/numba_kernel.py", "square_matrix/nvrtc.py"} & names


def test_rounds_on_one_queue_are_told_from_those_on_several():
    """Those of the submission, in order; a baseline's are none."""
    rounds = [heard("submission", number) for number in range(5)]
    mixed = [one for own in rounds for one in (own, heard("baseline", 99.0))]
    assert by_queues(mixed, 6) == {"several_queues_us": [0, 1, 2], "one_queue_us": [3, 4]}
    assert by_queues(mixed, len(mixed))["one_queue_us"] == []
