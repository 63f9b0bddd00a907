"""Splits C++ into tokens that, joined, are the source again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["Token", "tokenize"]

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
