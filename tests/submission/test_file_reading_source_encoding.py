"""Tests of grader.submission.file_reading: the encoding that a source declares, and how it is decoded."""

from __future__ import annotations

import codecs
import linecache
from pathlib import Path

import pytest

from grader.submission.file_reading import decoded, foreign_encoding

HONEST = [
    "# -*- coding: utf-8 -*-",
    "# coding: utf8",
    "# coding=UTF-8",
    "# -*- coding: utf-8-unix -*-",
    "#!/usr/bin/env python\n# vim: set fileencoding=utf_8 :",
    "# coding: ascii",
    "# coding: us-ascii",
    "# -*- coding: latin-1 -*-",
    "# -*- coding: iso-8859-1 -*-",
    "# -*- coding: iso-latin-1-unix -*-",
    "\f# coding: L1",
    "# Softmax, with positional encoding: sine and cosine",
    "x = 1\n# coding: rot13",
    "\n\n# coding: rot13",
    "s = '''\n# coding: rot13'''",
]
FOREIGN = {
    "# -*- coding: unicode_escape -*-": ("unicode_escape", 1),
    "# coding: raw-unicode-escape": ("raw-unicode-escape", 1),
    "#coding:utf-7": ("utf-7", 1),
    "#!/usr/bin/env python\n# coding=rot13": ("rot13", 2),
    " \t\n\f # vim: fileencoding=utf_16 :": ("utf_16", 2),
    "# about\r# coding: cp037": ("cp037", 2),
    "# coding: punycode, coding: utf-8": ("punycode", 1),
    "# -*- coding: cp1252 -*-": ("cp1252", 1),
    "# coding: hex": ("hex", 1),
}


@pytest.mark.parametrize("first", HONEST)
def test_utf_8_ascii_and_latin_1_are_accepted(first: str) -> None:
    """All names of the three encodings are known, and other comments declare nothing."""
    assert foreign_encoding(first + "\nx = 1\n") is None


@pytest.mark.parametrize(("first", "declared"), FOREIGN.items())
def test_any_other_encoding_is_named_with_its_line(first: str, declared: tuple[str, int]) -> None:
    """Python reads it on line 1, or on line 2 below a line without code."""
    assert foreign_encoding(first + "\nx = 1\n") == declared


@pytest.mark.parametrize(
    ("first", "encoding"),
    [
        ("", "utf-8"),
        ("# coding: utf8", "utf-8"),
        ("# coding: ascii", "utf-8"),
        ("# -*- coding: latin-1 -*-", "latin-1"),
        ("#!python \xe9t\xe9\n# vim: set fileencoding=iso-8859-1 :", "latin-1"),
    ],
)
def test_a_file_is_decoded_as_it_says(first: str, encoding: str) -> None:
    """A Latin-1 file that says so is read; any other is UTF-8."""
    text = first + "\n# d\xe9j\xe0 vu\n"
    assert decoded(text.encode(encoding)) == text


def test_what_python_reads_in_such_a_file_is_what_is_graded(tmp_path: Path) -> None:
    """The two agree even if a file that declares Latin-1 was saved as UTF-8."""
    path = tmp_path / "mine.py"
    path.write_bytes("# coding: latin-1\nx = 'é'\n".encode())
    assert decoded(path.read_bytes()) == "".join(linecache.getlines(str(path)))


def test_a_byte_order_mark_is_no_text() -> None:
    """A byte order mark means UTF-8, even if a line declares something else."""
    assert decoded(codecs.BOM_UTF8 + "# coding: latin-1\n# é".encode()) == "# coding: latin-1\n# é"


def test_what_is_not_utf_8_raises() -> None:
    """The error has the position."""
    with pytest.raises(UnicodeDecodeError):
        decoded(b"# d\xe9j\xe0 vu")
