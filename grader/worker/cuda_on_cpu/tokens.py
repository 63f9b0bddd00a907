"""C++ as tokens that, joined, are the source again, and the way from one to another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["CLOSING", "OPENING", "Token", "closing", "line_ends", "next_token", "opening", "previous_token", "tokenize"]

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
    """Every character of `source` is in exactly one token, also where it is no valid C++."""
    return [Token(match.lastgroup, match[0]) for match in _TOKEN.finditer(source)]  # type: ignore[arg-type]


def next_token(tokens: list[Token], at: int) -> int:
    """Index of the first token from `at` on that is neither space nor comment (or the length)."""
    while at < len(tokens) and tokens[at].blank:
        at += 1
    return at


def previous_token(tokens: list[Token], at: int) -> int:
    """Index of the last such token up to and including `at`, or -1."""
    while at >= 0 and tokens[at].blank:
        at -= 1
    return at


def closing(tokens: list[Token], at: int) -> int:
    """Index of the bracket that closes the one at `at`, or -1."""
    expected: list[str] = []
    for i in range(at, len(tokens)):
        if tokens[i].kind != "punctuation":
            continue
        text = tokens[i].text
        if text in CLOSING:
            expected.append(CLOSING[text])
        elif text in OPENING:
            if expected.pop() != text:
                return -1
            if not expected:
                return i
    return -1


def opening(tokens: list[Token], at: int) -> int:
    """Index of the bracket that the one at `at` closes, or -1."""
    expected: list[str] = []
    for i in range(at, -1, -1):
        if tokens[i].kind != "punctuation":
            continue
        text = tokens[i].text
        if text in OPENING:
            expected.append(OPENING[text])
        elif text in CLOSING:
            if expected.pop() != text:
                return -1
            if not expected:
                return i
    return -1


def line_ends(tokens: list[Token]) -> str:
    """Only the line ends of these tokens, for text that is left out."""
    return "".join(c for token in tokens for c in token.text if c == "\n")
