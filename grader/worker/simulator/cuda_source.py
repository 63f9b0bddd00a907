"""CUDA C++ on a machine without a GPU: the source is rewritten into C++ that runs blocks and threads on the CPU.

`translate` rewrites what C++ has no syntax for; the headers under `include/` supply the rest of CUDA. Blocks run one
after another, the threads of a block take turns on fibers, so results are reproducible. What is UB on a GPU and often
goes unnoticed there is reported: a barrier that some threads miss, lanes that meet at different shuffles, a write past
the dynamic shared memory. Shared memory starts as NaN, and every second block runs its threads backwards, so that a
missing `__syncthreads` tends to show as a wrong result.

Not simulated: half precision, tensor cores, cooperative groups, CUB, inline PTX, threads that spin until another
block has done something, and time.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from grader.worker.toolchain.compiler_errors import first_error, install_line_marks, line_mark

__all__ = [
    "CLOSING",
    "COMPILER_FLAGS",
    "INCLUDE",
    "OPENING",
    "Token",
    "closing",
    "first_error",
    "install_line_marks",
    "line_ends",
    "line_mark",
    "next_token",
    "opening",
    "previous_token",
    "shared_memory",
    "synchronize",
    "tokenize",
    "translate",
    "watch",
]


# C++ as tokens that, joined, are the source again, and the way from one to another.

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


# `__shared__` and `extern __shared__` as plain C++ over the memory of `launch.h`.


@dataclass
class _Shared:
    """What has been written so far of the file's shared arrays."""

    count: int = 0
    at_file_scope: set[str] = field(default_factory=set)


def shared_memory(tokens: list[Token]) -> list[Token]:
    """The tokens with every declaration of shared memory rewritten, on the lines where it stood."""
    result: list[Token] = []
    state = _Shared()
    depth = i = 0
    while i < len(tokens):
        text = tokens[i].text if tokens[i].kind in ("word", "punctuation") else ""
        if text in "{}" and text:
            depth += 1 if text == "{" else -1
        if text == "extern" and (after := _extern_shared(tokens, i)):
            result.append(_dynamic(tokens[i:after], depth == 0, state))
            i = after
        elif text == "__shared__" and (after := _statement_end(tokens, i)):
            before = previous_token(result, len(result) - 1)
            is_static = before >= 0 and result[before].text == "static"
            result.append(_static(tokens[i + 1 : after], is_static, state))
            i = after
        else:
            result.append(tokens[i])
            i += 1
    return result


def _statement_end(tokens: list[Token], at: int) -> int:
    """Index behind the `;` that ends the declaration at `at`, or 0."""
    i = at
    while i < len(tokens):
        text = tokens[i].text if tokens[i].kind == "punctuation" else ""
        if text == ";":
            return i + 1
        if text in CLOSING:
            i = closing(tokens, i)
            if i < 0:
                return 0
        elif text in OPENING:
            return 0
        i += 1
    return 0


def _extern_shared(tokens: list[Token], at: int) -> int:
    """Index behind `extern … __shared__ … name[];`, or 0 where this `extern` is another."""
    end = _statement_end(tokens, at)
    texts = {token.text for token in tokens[at:end]}
    return end if "__shared__" in texts and "{" not in texts else 0  # behind a function's body another statement ends


def _dynamic(declaration: list[Token], at_file_scope: bool, state: _Shared) -> Token:
    """`extern __shared__ T name[];` as a pointer to the block's dynamic shared memory."""
    words = [t for t in declaration[:-1] if not t.blank and t.text not in ("extern", "__shared__")]
    kept: list[Token] = []
    skip = 0
    for i, token in enumerate(words):  # an alignment says nothing about the pointer
        if i < skip:
            continue
        if token.text in ("__align__", "alignas", "__attribute__") and i + 1 < len(words) and words[i + 1].text == "(":
            skip = closing(words, i + 1) + 1
        else:
            kept.append(token)
    bracket = next((i for i, token in enumerate(kept) if token.text == "["), 0)
    if bracket < 2 or kept[bracket - 1].kind != "word":
        return Token("punctuation", "".join(token.text for token in declaration))
    name = kept[bracket - 1].text
    end = closing(kept, bracket)
    kind = " ".join(token.text for token in kept[: bracket - 1])
    rest = "".join(token.text for token in kept[end + 1 :])  # of a two-dimensional array
    if at_file_scope and name in state.at_file_scope:
        return Token("space", line_ends(declaration) or " ")
    if at_file_scope:
        state.at_file_scope.add(name)
    star = f"(*const {name}){rest}" if rest else f"*const {name}"
    cast = f"{kind} (*){rest}" if rest else f"{kind}*"
    text = f"[[maybe_unused]] {kind} {star} = reinterpret_cast<{cast}>(::cuda_on_cpu::dynamic_shared);"
    return Token("punctuation", text + line_ends(declaration))


def _static(declaration: list[Token], is_static: bool, state: _Shared) -> Token:
    """`__shared__ T name[n];` as a static array that is filled anew for each block."""
    text = ("" if is_static else "static") + "".join(token.text for token in declaration)
    if names := _declared(declaration):
        state.count += 1
        seen = f"cuda_on_cpu_seen_{state.count}"
        arguments = ", ".join(names)
        text += (
            f" static unsigned long {seen};"
            f" if (::cuda_on_cpu::first_in_block({seen})) ::cuda_on_cpu::poison({arguments});"
        )
    return Token("punctuation", text)


def _declared(declaration: list[Token]) -> list[str]:
    """The names that a declaration declares."""
    words = [token for token in declaration if not token.blank]
    names: list[str] = []
    angle = i = 0
    while i < len(words) - 1:
        token, after = words[i], words[i + 1]
        angle += {"<": 1, ">": -1, ">>>": -3}.get(token.text, 0)
        if token.text in CLOSING:
            i = closing(words, i)
        elif token.kind == "word" and angle == 0 and i > 0 and after.text in ("[", ",", ";"):
            names.append(token.text)
        i += 1
    return names


# CUDA's own syntax as C++: launches, shared memory, and the words that speak of the device.

_WORDS = {
    "__noinline__": "__attribute__((noinline))",  # libstdc++ uses this word: it cannot be a macro
    "kCUDA": "kCPU",
    "is_cuda": "is_cpu",
}
_NO_NAMES = ("return", "else", "do", "case")  # words before a kernel that are no part of its name
_DEVICE_NAMES = ("DeviceType", "DispatchKey", "Backend")
_REGISTRATIONS = ("TORCH_LIBRARY_IMPL", "STABLE_TORCH_LIBRARY_IMPL")


def translate(source: str) -> str:
    """C++ for `cuda_on_cpu.h` with the same number of lines, so that line numbers stay the author's.

    What looks wrong (an unclosed launch, say) is left as it is: the compiler will say so at its place. Checks that a
    tensor is on the GPU become checks that it is on the CPU.
    """
    tokens = _device(tokenize(source))
    return "".join(token.text for token in _launches(shared_memory(tokens)))


def _device(tokens: list[Token]) -> list[Token]:
    result = list(tokens)
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text in _WORDS:
            result[i] = Token("word", _WORDS[token.text])
        elif token.text == "CUDA":
            scope = previous_token(tokens, i - 1)
            owner = previous_token(tokens, scope - 1)
            if scope > 0 and tokens[scope].text == "::" and owner >= 0 and tokens[owner].text in _DEVICE_NAMES:
                result[i] = Token("word", "CPU")
        elif token.text in _REGISTRATIONS:
            begin = next_token(tokens, i + 1)
            end = closing(tokens, begin) if begin < len(tokens) and tokens[begin].text == "(" else -1
            for j in range(begin, end):
                if tokens[j].text == "CUDA":
                    result[j] = Token("word", "CPU")
    return result


def _launches(tokens: list[Token]) -> list[Token]:
    """`kernel<<<g, b>>>(arguments)` as `launch([&](auto... a) { kernel(a...); }, Config(g, b), arguments)`."""
    result: list[Token] = []
    i = 0
    while i < len(tokens):
        found = _launch(tokens, i) if tokens[i].text == "<<<" else None
        start = _kernel_start(result) if found else -1
        if not found or start < 0:
            result.append(tokens[i])
            i += 1
            continue
        end_of_config, begin, finish = found
        kernel = _text(result[start:])
        config = _text(_launches(tokens[i + 1 : end_of_config]))
        between = _text(tokens[end_of_config + 1 : begin])
        arguments = _launches(tokens[begin + 1 : finish])
        comma = "," if any(not token.blank for token in arguments) else ""
        result[start:] = [
            Token(
                "punctuation",
                f"::cuda_on_cpu::launch([&](auto... cuda_on_cpu_a) {{ {kernel}(cuda_on_cpu_a...); }}, "
                f"::cuda_on_cpu::Config({config}){comma}{between}{_text(arguments)})",
            )
        ]
        i = finish + 1
    return result


def _text(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens)


def _launch(tokens: list[Token], at: int) -> tuple[int, int, int] | None:
    """For the `<<<` at `at`: the indices of `>>>`, and of the brackets around the arguments."""
    i = at + 1
    while i < len(tokens):
        token = tokens[i]
        if token.text == ">>>":
            begin = next_token(tokens, i + 1)
            if begin >= len(tokens) or tokens[begin].text != "(":
                return None
            finish = closing(tokens, begin)
            return (i, begin, finish) if finish > 0 else None
        if token.kind == "punctuation":
            if token.text in CLOSING:
                i = closing(tokens, i)
                if i < 0:
                    return None
            elif token.text in OPENING or token.text == ";":
                return None
        i += 1
    return None


def _kernel_start(tokens: list[Token]) -> int:
    """Where the expression that names the kernel begins, the tokens ending with it; -1 if they do not."""
    i = previous_token(tokens, len(tokens) - 1)
    start = -1
    while i >= 0:
        if tokens[i].text == ")" and start < 0:  # (kernel)<<<…>>> or choose(kernel)<<<…>>>
            i = start = opening(tokens, i)
            before = previous_token(tokens, i - 1)
            if i < 0 or before < 0 or tokens[before].kind != "word" or tokens[before].text in _NO_NAMES:
                return start
            i = before
        elif tokens[i].text in (">", ">>>"):
            i = previous_token(tokens, _angle_open(tokens, i) - 1)
            if i < 0:
                return -1
        if tokens[i].kind != "word":
            return start
        start = i
        scope = previous_token(tokens, i - 1)
        if scope < 0 or tokens[scope].text != "::":
            return start
        start = scope
        i = previous_token(tokens, scope - 1)
        if i < 0 or tokens[i].text in _NO_NAMES or not (tokens[i].kind == "word" or tokens[i].text in (">", ">>>")):
            return start
    return start


def _angle_open(tokens: list[Token], at: int) -> int:
    """Index of the `<` that the `>` at `at` closes, or -1."""
    depth = 0
    i = at
    while i >= 0:
        text = tokens[i].text
        if tokens[i].kind in ("punctuation", "launch"):
            if text in OPENING:
                i = opening(tokens, i)
                if i < 0:
                    return -1
            elif text in (">", ">>>"):
                depth += len(text)
            elif text == "<":
                depth -= 1
                if depth == 0:
                    return i
            elif text in (";", "{") or text in CLOSING:
                return -1
        i -= 1
    return -1


# What a kernel that ran on the CPU did wrong, asked of every extension that was built for it.

_failures: dict[str, Callable[[], bytes | None]] = {}  # by path of the extension


def synchronize() -> None:
    """What `torch.cuda.synchronize` is to a GPU: raises what a kernel of an earlier call did wrong.

    Raises:
        RuntimeError: a kernel failed (a barrier that some threads miss, …), or its launch was refused and the
            launcher did not ask for the error.
    """
    for failure in _failures.values():
        if text := failure():
            raise RuntimeError(text.decode())


def watch(extension: Any) -> None:
    """Remembers how to ask the extension whether a kernel failed."""
    path = extension if isinstance(extension, str) else extension.__file__
    ask = ctypes.CDLL(path).cuda_on_cpu_failure
    ask.restype = ctypes.c_char_p
    _failures[path] = ask


# CUDA C++ on a machine without a GPU: the source is rewritten into C++ that runs blocks and threads on the CPU.
#
# `translate` rewrites what C++ has no syntax for; the headers under `include/` supply the rest of CUDA. Blocks run one
# after another, the threads of a block take turns on fibers, so results are reproducible. What is UB on a GPU and often
# goes unnoticed there is reported: a barrier that some threads miss, lanes that meet at different shuffles, a write past
# the dynamic shared memory. Shared memory starts as NaN, and every second block runs its threads backwards, so that a
# missing `__syncthreads` tends to show as a wrong result.
#
# Not simulated: half precision, tensor cores, cooperative groups, CUB, inline PTX, threads that spin until another
# block has done something, and time.

INCLUDE = Path(__file__).parent / "include"

COMPILER_FLAGS = (
    "-O1",
    "-std=c++20",
    "-fno-strict-aliasing",  # float* read as float4* is everyday CUDA
    "-fno-gnu-unique",  # a cell that is run again must not share statics with its earlier build
    "-U_FORTIFY_SOURCE",  # its longjmp refuses to change stacks
)
