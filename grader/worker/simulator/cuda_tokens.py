"""Split CUDA C++ into tokens, and find the brackets that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

CLOSING = {"(": ")", "[": "]", "{": "}"}
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
    | (?P<punctuation> ::|->|. )
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


_MOST_UNCLOSED = 8  # brackets: each takes a search to the end
TYPES = ("struct", "class", "union", "enum")


def declarations(tokens: list[Token], begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Return where each declaration begins, where its body or `;` is, and where it ends, at file or namespace scope."""
    head: list[str] = []  # outside of brackets
    start = at = begin
    unclosed = 0
    while at < end:
        token, after = tokens[at], at + 1
        text = token.text if token.kind == "punctuation" else ""
        if text == ";":
            yield start, at, after
            start, head = after, []
        elif text in CLOSING:
            after = closing(tokens, at) + 1
            if not after:  # as in a macro
                unclosed += 1
                if text == "{" or unclosed > _MOST_UNCLOSED:
                    return
                after = at + 1
            if text == "{" and ("namespace" in head or (head[:1] == ["extern"] and "(" not in head)):
                yield from declarations(tokens, at + 1, after - 1)
                start, head = after, []
            elif text == "{" and _is_function(head):
                yield start, at, after
                start, head = after, []
            else:
                head.append(text)
        elif not token.blank:
            head.append(token.text)
        at = after


def _is_function(head: list[str]) -> bool:
    depth = 0
    for at, word in enumerate(head if head[:1] == ["template"] else ()):
        depth += {"<": 1, ">": -1, ">>>": -3}.get(word, 0)
        if word[0] == ">" and depth <= 0:
            return _is_function(head[at + 1 :])
    return "(" in head and "=" not in head and head[0] not in TYPES


def name_of_function(tokens: list[Token], at: int) -> int:
    """Return the index of the name of the function whose declaration goes on after `at`, or 0."""
    i = at + 1
    while i < len(tokens) and tokens[i].text not in (";", "{", "}"):
        if tokens[i].text == "(":
            name = previous_token(tokens, i - 1)
            if tokens[name].text not in ("__launch_bounds__", "__attribute__", "__align__", "alignas"):
                return name if tokens[name].kind == "word" else 0
            i = closing(tokens, i)
            if i < 0:
                return 0
        i += 1
    return 0
