"""A worker's claims are data: cut to shape and length, and free of control characters."""

import math
import signal
import unicodedata

import pytest

from grader.judge.process.claims import death, failure_of, observed_of, plain, time_of

NOT_TIMES = [None, 0, 1, True, "0.1", [0.1], {}, 0.0, 5e-324, 1e-10, -0.1, math.nan, math.inf, -math.inf, 1e9]


@pytest.mark.parametrize("claim", NOT_TIMES)
def test_what_is_no_time_is_none(claim):
    """A number of the wrong type, zero or less, no number, or absurdly long."""
    assert time_of(claim) is None


@pytest.mark.parametrize("claim", [1e-9, 0.003, 100.0])
def test_a_time_is_a_time(claim):
    """Seconds as a float are taken as they are."""
    assert time_of(claim) == claim


@pytest.mark.parametrize("claim", [None, "text", 3, ["kind"], True])
def test_a_failure_that_is_no_object_is_one_still(claim):
    """For any other value the submission has failed, and a sentence says so."""
    found = failure_of(claim)
    assert found.kind == "exception"
    assert "cannot be read" in found.message


@pytest.mark.parametrize("kind", ["not_written", "compile", "exception", "illegal_access", "fails_on_gpu"])
def test_a_worker_may_say_how_its_submission_failed(kind):
    """Kind, message, line and detail arrive."""
    found = failure_of({"kind": kind, "message": "It failed.", "line": 7, "detail": "line 1\n\tline 2"})
    assert (found.kind, found.message, found.line, found.detail) == (kind, "It failed.", 7, "line 1\n\tline 2")


@pytest.mark.parametrize(
    "kind", ["limit", "implausible", "timeout", "crash", "unusable", "wrong_answer", [], {}, None, 3]
)
def test_what_only_the_judge_can_know_no_worker_says(kind):
    """A claim of a kind that the judge finds itself, or of none, is an exception."""
    assert failure_of({"kind": kind, "message": "x"}).kind == "exception"


@pytest.mark.parametrize("line", [0, -1, 10**9, 1.5, True, "7", None, [7]])
def test_a_line_that_is_none_is_left_out(line):
    """A line counts from 1 and is a whole number."""
    assert failure_of({"line": line}).line is None


@pytest.mark.parametrize("text", [None, 3, ["x"], {"x": 1}])
def test_a_message_that_is_no_text_is_empty(text):
    """Message and detail are text or nothing, and may be missing."""
    found = failure_of({"message": text, "detail": text})
    assert (found.message, found.detail) == ("", "")
    assert failure_of({}).message == ""


def test_no_text_of_a_worker_is_long():
    """A report stays a report whatever is sent."""
    found = failure_of({"message": "x" * 10**6, "detail": "y" * 10**6})
    assert len(found.message) <= 500
    assert len(found.detail) <= 4000
    assert len(death(1, "z" * 10**6).detail) <= 2000


def test_the_last_that_was_printed_is_kept():
    """The last output of a process explains most."""
    assert death(1, "first " * 1000 + "last").detail.endswith("last")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (-9, "SIGKILL"),
        (128 + 9, "SIGKILL"),
        (-6, "SIGABRT"),
        (128 + 6, "SIGABRT"),
        (-11, "memory"),
        (128 + 11, "memory"),
        (-7, "memory"),
        (-35, "signal 35"),
        (128 + 40, "signal 40"),
        (0, "ended itself"),
        (1, "ended itself"),
        (128, "ended itself"),
        (255, "ended itself"),
        (None, "cut its connection"),
    ],
)
def test_how_a_process_died_is_a_sentence(code, says):
    """The sentence follows from the exit status, or from bubblewrap's report of a signal."""
    found = death(code, "log")
    assert found.kind == "crash"
    assert says in found.message
    assert found.detail == "log"


def test_every_signal_has_a_sentence():
    """None makes the judge stumble."""
    for number in range(1, signal.SIGRTMAX + 1):
        assert death(-number, "").message == death(128 + number, "").message
        assert death(-number, "").message.startswith("The process")


CONTROLS = [chr(code) for code in range(0x100) if unicodedata.category(chr(code)) == "Cc" and chr(code) not in "\n\t"]
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # Unicode's Bidi_Control


@pytest.mark.parametrize("characters", [CONTROLS, DIRECTIONS], ids=["controls", "directions"])
def test_text_steers_nothing(characters):
    """Neither a terminal nor the direction of reading; lines and tabs stay."""
    for character in characters:
        assert plain(f"a{character}b\n\tc") == "ab\n\tc", hex(ord(character))
    assert failure_of({"message": f"a{characters[1]}b", "detail": f"a{characters[1]}b"}).message == "ab"


def test_text_of_any_language_stays_and_half_a_character_does_not_stop_it():
    """Only control characters are removed; invalid Unicode becomes a question mark."""
    assert plain("µs → 猫 é 🙂") == "µs → 猫 é 🙂"
    assert plain("a\ud800b") == "a?b"


@pytest.mark.parametrize(
    "claim", [None, "text", 3, {}, [], [None], [{"kind": "note"}], [{"kind": "timeout", "message": 3}]]
)
def test_an_observation_without_a_sentence_is_none(claim):
    """A simulator that observed nothing, or cannot be understood, changes no verdict."""
    assert observed_of(claim) == ((), (), "", "")


def test_observations_are_failures_and_notes():
    """A race fails the case, and its advice arrives. A note has its line in front. A few of each round are kept."""
    race = {"kind": "fails_on_gpu", "message": "A race.", "line": 3, "advice": "Add with an atomic."}
    note = {"kind": "note", "message": "Read past the end.", "line": 4}
    others = [{"kind": kind, "message": f"Of {kind}."} for kind in ("cause", "overflow", "cause", "overflow")]
    failures, findings, cause, overflow = observed_of([race, note, *others])
    assert (cause, overflow) == ("Of cause.", "Of overflow.")
    assert [(each.kind, each.line, each.advice) for each in failures] == [("fails_on_gpu", 3, "Add with an atomic.")]
    assert [(each.kind, each.sentence) for each in findings] == [("access", "Line 4: Read past the end.")]
    assert len(observed_of([race] * 100)[0]) == 4
