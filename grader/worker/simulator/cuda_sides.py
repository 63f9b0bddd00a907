"""Find what the host and the GPU use of each other and may not, in the tokens of a CUDA C++ source, in nvcc's words.

NVRTC compiles the code for the GPU alone, so it cannot tell.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.worker.simulator.cuda_tokens import Token, closing, joined, next_token
from grader.worker.simulator.cuda_variables import declared

ADDED_WORDS = ("__device__", "__constant__", "__managed__", "__shared__")
OF_THE_GPU = ("__global__", "__device__")
CALLED = 'calling a __host__ function("{}") from a {} is not allowed'
EXTENDED = "extended-lambda"
NEEDS_FLAG = f"__host__ or __device__ annotation on lambda requires --{EXTENDED} nvcc flag"
_REFERENCE = "a parameter of a __global__ function cannot be a reference"
_OF_A_TABLE = 'identifier "{}" is undefined in device code: make the array `__constant__`'
_TEMPLATE = re.compile(r"\btemplate\s*<[^;{}()]*>")
_VARIABLE = (
    r"(?<!const )(?<!constexpr )\b(?:int|unsigned|size_t|long|short|char|auto|\w+_t)"
    r"\s+(?:\w+[^;,(){{}}]*,\s*)*{}\b\s*[=;:,)]"
)
_CONSTANT = r"\bconst(?:expr)?\b[^;,(){{}}=\[]*\b{}\b"
_CONSTANT_PLACES = {  # in a statement: a declaration, or one of the others
    "const", "constexpr", "static_assert", "case", "enum", "sizeof", "decltype", "auto", "bool", "char", "short", "int",
    "long", "unsigned", "float", "double", "size_t",
}  # fmt: skip
_OF_A_THREAD = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_OF_STATEMENTS = ("return", "case", "else", "do")
_NO_TYPE = re.compile(r"\([^()&][^()]*\)|=[^,]*")  # of a function pointer's parameters, or a default argument


@dataclass
class Part:
    """A declaration at file or namespace scope: tokens from `begin` up to `end`, and the body begins at `body`."""

    begin: int
    end: int
    body: int
    name: str
    host: bool


def misuses(tokens: list[Token], parts: list[Part], extended: bool) -> list[tuple[int, str]]:
    """Return each misuse as its line and the error; `extended`: nvcc accepts lambdas with `__device__`."""
    return [
        *_calls(tokens, parts), *_launches(tokens, parts), *_of_a_thread(tokens, parts),
        *_lambdas(tokens, parts, extended), *_references(tokens, parts), *_tables(tokens, parts),
    ]  # fmt: skip


def _calls(tokens: list[Token], parts: list[Part]) -> list[tuple[int, str]]:
    """Return the calls of functions that have no version for the device."""
    host = _functions_of_the_host(tokens, parts)
    found = []
    for part in parts:
        if part.host or tokens[part.body].text != "{":
            continue
        kind = "__global__" if any(t.text == "__global__" for t in tokens[part.begin : part.body]) else "__device__"
        if not any(t.text == kind for t in tokens[part.begin : part.body]):
            continue
        code = [at for at in range(part.body, part.end) if not tokens[at].blank]
        for before, at, after in zip(code, code[1:], code[2:], strict=False):
            called = tokens[at].text in host and tokens[after].text in ("(", "<")
            elsewhere = tokens[before].text in (".", "->", "::") or tokens[before].kind == "word"
            if called and not elsewhere and not _has_own(tokens, part, tokens[at].text):
                said = CALLED.format(tokens[at].text, f'{kind} function("{part.name}")')
                found.append((_line(tokens, at), said))
    return found


def _has_own(tokens: list[Token], part: Part, name: str) -> bool:
    """Return whether the function declares a parameter or a variable of this name, such as a lambda."""
    code = [at for at in range(part.begin, part.end) if not tokens[at].blank]
    return any(
        (tokens[before].kind == "word" and tokens[before].text not in _OF_STATEMENTS)
        or (tokens[before].text in ("*", "&", ">") and tokens[after].text in (",", ")", ";", "="))
        for before, at, after in zip(code, code[1:], code[2:], strict=False)
        if tokens[at].text == name
    )


def _functions_of_the_host(tokens: list[Token], parts: list[Part]) -> set[str]:
    """Return the names of functions that are defined for the host only."""
    device = {part.name for part in parts if not part.host}
    return {part.name for part in parts if part.host and tokens[part.body].text == "{"} - device - {""}


def _launches(tokens: list[Token], parts: list[Part]) -> list[tuple[int, str]]:
    """Return the launches of functions of the host: `__global__` was forgotten."""
    host = _functions_of_the_host(tokens, parts)
    code = [at for at, token in enumerate(tokens) if not token.blank]
    return [
        (_line(tokens, at), f'a host function call cannot be configured: "{tokens[before].text}" is not a kernel')
        for before, at in itertools.pairwise(code)
        if tokens[at].text == "<<<" and tokens[before].text in host
    ]


def _lambdas(tokens: list[Token], parts: list[Part], extended: bool) -> Iterator[tuple[int, str]]:
    """Yield the host's lambdas with `__device__`, unless nvcc has its flag, and those without that go to kernels."""
    for part in parts:
        code = [at for at in range(part.body, part.end) if part.host and not tokens[at].blank]
        passed, names = _passed(tokens, code)
        for name, before, at in zip(code, code[1:], code[2:], strict=False):
            if tokens[at].text != "[" or tokens[before].text not in ("=", "(", ","):
                continue
            rest = range(closing(tokens, at), part.end)
            head = list(itertools.takewhile(lambda i: tokens[i].text not in ("{", ";"), rest))
            if any(tokens[i].text == "__device__" for i in head):
                if not extended:
                    yield _line(tokens, at), NEEDS_FLAG
            elif at in passed or (tokens[before].text == "=" and tokens[name].text in names):
                after = next_token(tokens, closing(tokens, head[-1] + 1) + 1)
                if tokens[after].text != "(":  # the value, not the lambda, if it is called at once
                    yield _line(tokens, at), CALLED.format("lambda", "__global__ function")


def _passed(tokens: list[Token], code: list[int]) -> tuple[set[int], set[str]]:
    """Return the first token of each argument of the launches in `code`, and the arguments that are only a name."""
    passed: set[int] = set()
    names: set[str] = set()
    launches = False
    for at, begin in itertools.pairwise(code):
        if tokens[at].text == ">>>" and launches and tokens[begin].text == "(":
            inside = [i for i in range(begin, closing(tokens, begin) + 1) if not tokens[i].blank]
            for before, argument, after in zip(inside, inside[1:], inside[2:], strict=False):
                if tokens[before].text in ("(", ","):
                    passed.add(argument)
                    names |= {tokens[argument].text} if tokens[after].text in (",", ")") else set()
        if tokens[at].kind == "launch":
            launches = tokens[at].text == "<<<"
    return passed, names


def _references(tokens: list[Token], parts: list[Part]) -> Iterator[tuple[int, str]]:
    """Yield the kernels with a parameter that is a reference."""
    for part in parts:
        head = [tokens[at].text for at in range(part.begin, part.body)]
        if "__global__" in head and part.name:
            begin = next_token(tokens, part.begin + head.index(part.name) + 1)
            parameters = [at for at in range(begin + 1, closing(tokens, begin)) if not tokens[at].blank]
            if "&" in _NO_TYPE.sub("", "".join(tokens[at].text for at in parameters)):
                yield _line(tokens, next(at for at in parameters if tokens[at].text == "&")), _REFERENCE


def _tables(tokens: list[Token], parts: list[Part]) -> Iterator[tuple[int, str]]:
    """Yield where the GPU looks up an element of the host's `constexpr` array, outside of what nvcc computes itself."""
    tables: set[str] = set()
    for part in parts:
        words = [each for each in tokens[part.begin : part.end] if not each.blank]
        texts = {each.text for each in words}
        if {"constexpr", "["} <= texts and words[-1].text == ";" and not texts.intersection(ADDED_WORDS):
            tables.update(declared(words))
    for part in parts:
        head, function = (joined(tokens[part.begin : end]) for end in (part.body, part.end))
        if "constexpr" in head or not any(word in head for word in OF_THE_GPU):
            continue
        function = _TEMPLATE.sub("", function)
        for at in range(part.body, part.end):
            begin = next_token(tokens, at + 1)
            if tokens[at].text not in tables or tokens[begin].text != "[" or _has_own(tokens, part, tokens[at].text):
                continue
            index = [each.text for each in tokens[begin : closing(tokens, begin)] if each.kind == "word"]
            varying = [word for word in index if not re.search(_CONSTANT.format(word), function)]
            varies = any(word in _OF_A_THREAD or re.search(_VARIABLE.format(word), function) for word in varying)
            if varies or not _may_be_constant(tokens, at):
                yield _line(tokens, at), _OF_A_TABLE.format(tokens[at].text)


def _may_be_constant(tokens: list[Token], at: int) -> bool:
    """Whether nvcc may compute what is at `at` itself: in an initial value, a size, a template argument or a label."""
    words: list[Token] = []
    while at > 0 and tokens[at - 1].text not in (";", "{", "}"):
        at -= 1
        words = words if tokens[at].blank else [tokens[at], *words]
    before = [each for each in tokens[: at - 1] if not each.blank][-1:] if at and tokens[at - 1].text == "{" else []
    in_braces = any(each.text in ("=", ",", "{", "]") or each.kind == "word" for each in before)
    declares = any(
        one.kind == other.kind == "word" and one.text not in _OF_STATEMENTS for one, other in itertools.pairwise(words)
    )
    listed = in_braces and before[0].text not in _OF_STATEMENTS
    constant = not _CONSTANT_PLACES.isdisjoint(each.text for each in words)
    return listed or declares or constant or [each.text for each in words[-1:]] == ["<"]


def _of_a_thread(tokens: list[Token], parts: list[Part]) -> list[tuple[int, str]]:
    """Return the host's uses of variables such as `blockDim`, unless it may have its own of that name."""
    found: dict[str, list[tuple[int, bool]]] = {}
    for part in parts:
        code = [at for at in range(part.begin, part.end) if not tokens[at].blank] if part.host else []
        if any(tokens[at].text in OF_THE_GPU for at in code):
            continue  # a lambda for the GPU
        for before, at, after in zip(code, code[1:], code[2:], strict=False):
            if tokens[at].text in _OF_A_THREAD and tokens[before].text not in (".", "->", "::"):
                found.setdefault(tokens[at].text, []).append((_line(tokens, at), tokens[after].text == "."))
    return [
        (uses[0][0], f'identifier "{name}" is undefined in host code: only kernels have it')
        for name, uses in found.items()
        if all(is_member for _, is_member in uses)
    ]


def _line(tokens: list[Token], at: int) -> int:
    return 1 + sum(token.text.count("\n") for token in tokens[:at])
