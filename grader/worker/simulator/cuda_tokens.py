"""Split CUDA C++ into tokens, and find the brackets that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

CLOSING = {"(": ")", "[": "]", "{": "}"}
OPENING = {close: open_ for open_, close in CLOSING.items()}

Kind = Literal["comment", "string", "char", "number", "word", "space", "launch", "punctuation", "alternative"]

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
    """A piece of source; `launch` is `<<<` or `>>>`, which also closes three template argument lists.

    `alternative` is a bracket without a partner in its branch of an `#if`, where another branch has it too.
    """

    kind: Kind
    text: str

    @property
    def blank(self) -> bool:
        return self.kind in ("comment", "space")


def tokenize(source: str) -> list[Token]:
    """Split the source into tokens that, joined, are the source again, even if it is not valid C++."""
    tokens = [Token(match.lastgroup, match[0]) for match in _TOKEN.finditer(source)]  # type: ignore[arg-type]
    for at in _alternatives(tokens):
        tokens[at] = Token("alternative", tokens[at].text)
    return tokens


def _alternatives(tokens: list[Token]) -> list[int]:
    """The brackets without a partner in their branch of an `#if`, but for those of the first branch that has any."""
    found: list[int] = []
    groups: list[list[list[int]]] = [[[]]]  # nested, each a list of branches: their brackets without a partner
    for at, token in enumerate(tokens):
        if token.kind != "punctuation":
            continue
        if token.text == "#":
            word = tokens[min(next_token(tokens, at + 1), len(tokens) - 1)].text
            if word in ("if", "ifdef", "ifndef"):
                groups.append([[]])
            elif word in ("else", "elif", "elifdef", "elifndef"):
                groups[-1].append([])
            elif word == "endif" and len(groups) > 1:
                first, *others = [branch for branch in groups.pop() if branch] or [[]]
                found += [each for branch in others for each in branch]
                for each in first:
                    _pair(tokens, groups[-1][-1], each)
        elif token.text in CLOSING or token.text in OPENING:
            _pair(tokens, groups[-1][-1], at)
    return found


def _pair(tokens: list[Token], open_: list[int], at: int) -> None:
    """Take away the bracket that the one at `at` closes, or add this one."""
    if open_ and tokens[open_[-1]].text == OPENING.get(tokens[at].text):
        open_.pop()
    else:
        open_.append(at)


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
