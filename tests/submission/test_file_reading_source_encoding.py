"""Tests of grader.submission.file_reading: what a source declares, and what is made of it."""

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
def test_utf_8_and_what_is_as_plain_is_nobodys_fault(first: str) -> None:
    """UTF-8, ASCII and Latin-1 by any of their names, and comments that declare nothing."""
    assert foreign_encoding(first + "\nx = 1\n") is None


@pytest.mark.parametrize(("first", "told"), FOREIGN.items())
def test_any_other_encoding_is_named_with_its_line(first: str, told: tuple[str, int]) -> None:
    """Wherever Python looks for it: on line 1, or on line 2 below a line without code."""
    assert foreign_encoding(first + "\nx = 1\n") == told


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
    """Also where a file that says Latin-1 was saved as UTF-8."""
    path = tmp_path / "mine.py"
    path.write_bytes("# coding: latin-1\nx = 'é'\n".encode())
    assert decoded(path.read_bytes()) == "".join(linecache.getlines(str(path)))


def test_a_byte_order_mark_is_no_text() -> None:
    """It says UTF-8, whatever a line says."""
    assert decoded(codecs.BOM_UTF8 + "# coding: latin-1\n# é".encode()) == "# coding: latin-1\n# é"


def test_what_is_not_utf_8_raises() -> None:
    """With the place."""
    with pytest.raises(UnicodeDecodeError):
        decoded(b"# d\xe9j\xe0 vu")
