"""Split CUDA C++ into tokens, and find the brackets that belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

CLOSING = {"(": ")", "[": "]", "{": "}", "[[": "]]"}
OPENING = {close: open_ for open_, close in CLOSING.items()}

Kind = Literal["comment", "string", "char", "number", "word", "space", "launch", "punctuation"]

_TOKEN = re.compile(
    r"""
      (?P<comment>     //(?:[^\\\n]|\\\r?\n|\\)*  |  /\*.*?(?:\*/|\Z) )
    | (?P<string>      (?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"  |  (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" )
    | (?P<char>        (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+' )
    | (?P<number>      \.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])* )
    | (?P<word>        [A-Za-z_$][\w$]* )
    | (?P<space>       (?:\s|\\\r?\n)+ )
    | (?P<launch>      <<<|>>> )
    | (?P<punctuation> ::|->|\[\[|\]\]|. )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of source; `launch` is `<<<` or `>>>`, which also closes three template argument lists."""

    kind: Kind
    text: str

    @property
    def blank(self) -> bool:
        return self.kind in ("comment", "space")


def tokenize(source: str) -> list[Token]:
    """Split the source into tokens that, joined, are the source again, even if it is not valid C++."""
    return [Token(match.lastgroup, match[0]) for match in _TOKEN.finditer(source)]  # type: ignore[arg-type]


def next_token(tokens: list[Token], at: int) -> int:
    """Return the index of the first token from `at` on that is not a space or a comment, or the length."""
    while at < len(tokens) and tokens[at].blank:
        at += 1
    return at


def previous_token(tokens: list[Token], at: int) -> int:
    """Return the index of the last such token up to and including `at`, or -1."""
    while at >= 0 and tokens[at].blank:
        at -= 1
    return at


def closing(tokens: list[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at `at`, or -1."""
    return _partner(tokens, range(at, len(tokens)), CLOSING, OPENING)


def opening(tokens: list[Token], at: int) -> int:
    """Return the index of the bracket that the one at `at` closes, or -1."""
    return _partner(tokens, range(at, -1, -1), OPENING, CLOSING)


def _partner(tokens: list[Token], indices: range, starts: Mapping[str, str], ends: Mapping[str, str]) -> int:
    expected: list[str] = []
    for i in indices:
        text = tokens[i].text if tokens[i].kind == "punctuation" else ""
        if text in starts:
            expected.append(starts[text])
        elif text in ends:
            if expected.pop() != text:
                return -1
            if not expected:
                return i
    return -1


def joined(tokens: list[Token]) -> str:
    """Return the tokens' text."""
    return "".join(token.text for token in tokens)
