"""Tests of grader.classroom.student_names: names must not differ in invisible ways."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from grader.classroom.student_names import is_name, look_alikes, skeleton, spelled


@pytest.mark.parametrize(
    "name",
    [
        *("ann", "ann.b", "ann_b-c@example.org", "ann+x@example.org", "_ann", "2026-ab", "Zo\xeb M\xfcller", "Jos\xe9"),
        *("\u041e\u043b\u044c\u0433\u0430", "\u039a\u03ce\u03c3\u03c4\u03b1\u03c2", "\u674e\u660e", "\u738b\u4f1f Wei"),
        *("\u4f50\u3005\u6728 \u30b5\u30c8\u30fc", "\uae40\ucca0\uc218", "\u0e01\u0e33\u0e1e\u0e25"),
        *(
            "\u0939\u093f\u0928\u094d\u0926\u0940",
            "\u0645\u062d\u0645\u062f",
            "\u05d9\u05d5\u05e1\u05d9",
            "\u018fliyev",
        ),
        *("Nguy\u1ec5n V\u0103n", "\u0130brahim"),
    ],
)
def test_names_as_people_have_them_are(name: str) -> None:
    """Names in any language are valid."""
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("\u0430lice", "alic\u0435", "\u03bfscar", "b\u04e9b", "\u674e\u0430", "\u0585lga"),  # of two scripts
        *("jose\u0301", "a\u0336b", "\u1112\u1161\u11ab", "a\u034fb"),  # marks, and letters in parts
        *("\uff41lice", "\U0001d41alice", "\ufb01n", "\u2170", "\xaa", "\u24d0"),  # letters in another form
        *("al\xadice", "al\u200bice", "al\u200dice", "al\u2060ice", "al\ufeffice", "al\u061cice", "al\u180eice"),
        *("al\ufe0fice", "al\U000e0100ice", "al\U000e0061ice", "al\U000e0001ice", "al\u180bice", "al\u180fice"),
        *("a\u115fb", "\u1160", "\u3164", "\uffa0", "\u674e\u3164", "\uae40\u1160", "\u1780\u17b4", "a\u2800b"),
        *("a\u206ab", "a\ufff9b", "a\U0001d173b", "a\U0001bca0b", "a\u2028b", "a\x85b", "a\ue000b", "a\u0378b"),
        *("", " ", "ann ", " ann", "a  b", "a\xa0b", "a\u3000b", "a\u2009b", "a\u1680b", "a\tb"),  # blanks
        *(
            "\u0251lice",
            "\u1d00lice",
            "a\u02bcb",
            "a\u01c0b\u200c",
            "\u0645\u0640\u062d",
            "a\u2019b",
            "\u13aa",
            "\ua4ee",
        ),
        *("2026-\u09ea", "\u0664", "-ann", ".ann", "@ann", "..", "a/b", "a,b", "a:b", "a\\b", "a*", "a[b]", "a?"),
    ],
)
def test_what_nobody_sees_or_could_tell_apart_is_in_no_name(name: str) -> None:
    """Only letters of one script, digits and a few marks are allowed."""
    assert not is_name(name)


def test_no_character_of_a_name_is_invisible() -> None:
    """No name contains format characters, fillers, blanks, variation selectors or letters in a decomposed form."""
    ignorable = [0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)]
    ignorable += [*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0]
    ignorable += [*range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)]
    letters = "a\u0436\u0391\u0561\u10d0\u05d0\u0627\u1200\u0915\u0995\u0e01\u1780\u1000\u4e2d\u3042\uac00"
    assert not [hex(code) for code in ignorable for letter in letters if is_name(f"{letter}{chr(code)}")]
    allowed = [c for c in map(chr, range(sys.maxunicode + 1)) if is_name(c)]
    assert len(allowed) > 50_000
    assert {unicodedata.category(c)[0] for c in allowed} <= {"L", "M", "N", "P"}  # the last of them is the low line
    assert [c for c in allowed if unicodedata.category(c)[0] in "NP"] == list("0123456789_")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("alice", "ALICE"), ("alice", "a1ice"), ("alice", "aIice".replace("l", "1")), ("bob", "b0b"), ("Ian", "lan")),
        *(("paco", "\u0440\u0430\u0441\u043e"), ("oxi", "\u03bf\u03c7\u03b9"), ("jose", "jos\xe9"), ("arno", "amo")),
        *(
            ("\u0441\u043e\u043d\u044f", "\u0421\u041e\u041d\u042f"),
            ("\u5de5\u529b", "\u30a8\u30ab"),
            ("a-b", "a\u30fcb"),
        ),
        *(("stra\xdfe", "STRASSE"), ("\u0219an", "\u015fan"), ("alice", "al\u0131ce")),
    ],
)
def test_names_that_look_alike_are_told(one: str, other: str) -> None:
    """Letters of other scripts, digits, case and accents can make names look alike."""
    assert look_alikes([one, other, "zoe"]) == {one: {other}, other: {one}}
    assert skeleton(one)


def test_names_of_a_class_are_told_apart() -> None:
    """Numbered accounts do not look alike, nor do ordinary names."""
    names = ["ann", "anna", "bob", "rob", "li", "lee", "ian", "lan", "mia"]
    assert look_alikes([*(f"s{number:03}" for number in range(1000)), *names]) == {}


def test_a_plain_name_needs_no_spelling() -> None:
    """Other names are shown with their code points."""
    assert spelled("ann") == ""
    assert spelled("\u0430nn\udcff") == r" (spelled \u0430nn\udcff)"
