"""Rewrite CUDA C++ into C++ that runs blocks and threads on the CPU, for machines without a GPU.

`translate` rewrites the syntax that C++ does not have; the headers in `include/` supply the rest. Blocks run one
after another, and the threads of a block take turns on fibers, so results are reproducible. Errors that are undefined
behaviour on a GPU are reported, such as a barrier that some threads miss. The compiler's instrumentation reports each
access to memory, and so races, misaligned accesses and those outside of every array. Shared memory starts as NaN, and
every second block runs its threads backwards, so that a missing `__syncthreads` usually gives a wrong result.

Not simulated: tensor cores, inline PTX, and threads that spin until another block has done something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

INCLUDE = Path(__file__).parent / "include"
_PATTERN, _ZERO = "-ftrivial-auto-var-init=pattern", "-ftrivial-auto-var-init=zero"
COMPILER_FLAGS = [
    "-O1",
    "-std=c++20",
    _PATTERN,  # a variable without a value is -1.7e38, not by chance what was right before
    "-fno-strict-aliasing",  # reading float* as float4* is common in CUDA
    "-g1",  # the lines of accesses
    "-fsanitize=thread,alignment,bounds",  # `instrumented.h` is its library: link without this option
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
    "-fno-gnu-unique",  # a cell that is run again must not share statics with its earlier build
    "-U_FORTIFY_SOURCE",  # its longjmp refuses to change stacks
]


def zero_variables() -> None:
    """From now on, build code whose variables without a value begin as 0: a case that is right only then has a bug."""
    COMPILER_FLAGS[:] = [_ZERO if flag == _PATTERN else flag for flag in COMPILER_FLAGS]


def zeroes_variables() -> bool:
    """Whether `zero_variables` was called."""
    return _ZERO in COMPILER_FLAGS


def flags_with_torch() -> list[str]:
    """For a source with torch's headers, where checks of subscripts and pointers, and line numbers, cost seconds."""
    kept = (flag for flag in COMPILER_FLAGS if flag != "-g1")
    return [*kept, "-fno-sanitize=alignment,bounds", "-DCUDA_ON_CPU_TORCH"]


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


@dataclass
class _Shared:
    """The rewritten declarations of a file so far."""

    count: int = 0
    at_file_scope: set[str] = field(default_factory=set)


def shared_memory(tokens: list[Token]) -> list[Token]:
    """Rewrite every declaration of shared memory as plain C++ over the memory of `launch.h`, on its own lines."""
    result: list[Token] = []
    state = _Shared()
    outside: list[bool] = []  # of functions and of a macro's arguments, within each bracket
    i = 0
    while i < len(tokens):
        text = tokens[i].text if tokens[i].kind in ("word", "punctuation") else ""
        if text in ("{", "("):
            outside.append(text == "{" and _opens_a_namespace(tokens, i))
        elif text in ("}", ")") and outside:
            outside.pop()
        if text == "extern" and (after := _extern_shared(tokens, i)):
            result.append(_dynamic(tokens[i:after], all(outside), state))
            i = after
        elif text == "__shared__" and (after := _statement_end(tokens, i)):
            before = previous_token(result, len(result) - 1)
            is_static = before >= 0 and result[before].text == "static"
            at_file_scope = all(outside) and not _in_directive(tokens, i)
            result.append(_static(tokens[i + 1 : after], is_static, at_file_scope, state))
            i = after
        else:
            result.append(tokens[i])
            i += 1
    return result


def _in_directive(tokens: list[Token], at: int) -> bool:
    """Whether a token is part of a line for the preprocessor, such as a macro's definition."""
    while at > 0 and not (tokens[at - 1].kind == "space" and re.search(r"(?<!\\)(?<!\\\r)\n", tokens[at - 1].text)):
        at -= 1
    return tokens[next_token(tokens, at)].text == "#"


def _opens_a_namespace(tokens: list[Token], brace: int) -> bool:
    """Whether the brace opens `namespace name {`, `namespace {` or `extern "C" {`."""
    at = previous_token(tokens, brace - 1)
    if at >= 0 and tokens[at].kind == "string":
        return tokens[previous_token(tokens, at - 1)].text == "extern"
    while at >= 0 and tokens[at].text != "namespace" and (tokens[at].kind == "word" or tokens[at].text == "::"):
        at = previous_token(tokens, at - 1)
    return at >= 0 and tokens[at].text == "namespace"


def _statement_end(tokens: list[Token], at: int) -> int:
    """Return the index after the `;` that ends the declaration at `at`, or 0."""
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
    """Return the index after `extern … __shared__ … name[];`, or 0 if this `extern` declares something else."""
    end = _statement_end(tokens, at)
    texts = {token.text for token in tokens[at:end]}
    return end if "__shared__" in texts and "{" not in texts else 0  # a body: `;` ends a later statement


def _dynamic(declaration: list[Token], at_file_scope: bool, state: _Shared) -> Token:
    """Rewrite `extern __shared__ T name[];` as a pointer to the block's dynamic shared memory."""
    words = [t for t in declaration[:-1] if not t.blank and t.text not in ("extern", "__shared__")]
    kept: list[Token] = []
    skip = 0
    for i, token in enumerate(words):  # the pointer needs no alignment
        if i < skip:
            continue
        if token.text in ("__align__", "alignas", "__attribute__") and i + 1 < len(words) and words[i + 1].text == "(":
            skip = closing(words, i + 1) + 1
        else:
            kept.append(token)
    bracket = next((i for i, token in enumerate(kept) if token.text == "["), 0)
    if bracket < 2 or kept[bracket - 1].kind != "word":
        return Token("punctuation", _text(declaration))
    name = kept[bracket - 1].text
    end = closing(kept, bracket)
    kind = " ".join(token.text for token in kept[: bracket - 1])
    rest = _text(kept[end + 1 :])  # of a two-dimensional array
    ends = "".join(c for c in _text(declaration) if c == "\n")
    if at_file_scope and name in state.at_file_scope:
        return Token("space", ends or " ")
    if at_file_scope:
        state.at_file_scope.add(name)
    star = f"(*const {name}){rest}" if rest else f"*const {name}"
    cast = f"{kind} (*){rest}" if rest else f"{kind}*"
    text = f"[[maybe_unused]] {kind} {star} = reinterpret_cast<{cast}>(::cuda_on_cpu::dynamic_shared);"
    return Token("punctuation", text + ends)


def _static(declaration: list[Token], is_static: bool, at_file_scope: bool, state: _Shared) -> Token:
    """Rewrite `__shared__ T name[n];` as members of a static object with guards around them, new for each block."""
    names = declared(declaration)
    text = _text(declaration)
    if not names or "{" in text:
        return Token("punctuation", ("" if is_static else "static") + text)
    state.count += 1
    own, seen = f"cuda_on_cpu_shared_{state.count}", f"cuda_on_cpu_seen_{state.count}"
    before, after = (
        f"unsigned char cuda_on_cpu_{side}[::cuda_on_cpu::shared_guard_bytes];" for side in ("before", "after")
    )
    references = "".join(f" [[maybe_unused]] static auto& {name} = {own}.{name};" for name in names)
    calls = ", ".join(f'::cuda_on_cpu::shared({name}, "{name}")' for name in names)
    shared = f"{'' if is_static else 'static '}struct {{ {before} {text} {after} }} {own};{references}"
    if at_file_scope:
        return Token("punctuation", f"{shared} static ::cuda_on_cpu::SharedVariable {seen}([] {{ {calls}; }});")
    new = f" static unsigned long {seen}; if (::cuda_on_cpu::first_in_block({seen})) {calls};"
    return Token("punctuation", shared + new)


_VARIABLES = ("__device__", "__constant__", "__managed__")


def _variables(tokens: list[Token]) -> list[Token]:
    """Register each variable of the GPU with its name and line, after its declaration."""
    result: list[Token] = []
    i = count = 0
    while i < len(tokens):
        end = _statement_end(tokens, i) if tokens[i].text in _VARIABLES else 0
        names = [] if not end or _is_function(tokens[i:end]) else declared(tokens[i:end])
        before = previous_token(tokens, i - 1)
        if not names or (before >= 0 and tokens[before].text == "extern"):
            result.append(tokens[i])
            i += 1
            continue
        result += tokens[i:end]
        for name in names:
            count += 1
            managed = str(any(token.text == "__managed__" for token in tokens[i:end])).lower()
            text = f' static ::cuda_on_cpu::Variable cuda_on_cpu_variable_{count}({name}, "{name}", {managed});'
            result.append(Token("punctuation", text))
        i = end
    return result


def _is_function(declaration: list[Token]) -> bool:
    words = [token for token in declaration if not token.blank]
    i = 0
    while i < len(words) and words[i].text not in ("=", "{"):
        if words[i].text == "(" and words[i - 1].text not in ("__align__", "alignas"):
            return True
        i = max(i, closing(words, i)) + 1 if words[i].text in CLOSING else i + 1
    return False


def declared(declaration: list[Token]) -> list[str]:
    """Return the names that a declaration declares."""
    words = [token for token in declaration if not token.blank]
    names: list[str] = []
    angle = i = 0
    while i < len(words) - 1:
        token, after = words[i], words[i + 1]
        angle += {"<": 1, ">": -1, ">>>": -3}.get(token.text, 0)
        if token.text in CLOSING:
            i = closing(words, i)
        elif token.text == "=":  # the initial value
            i += 1
            while i < len(words) - 1 and words[i].text not in (",", ";"):
                i = max(i, closing(words, i)) + 1 if words[i].text in CLOSING else i + 1
        elif token.kind == "word" and angle == 0 and i > 0 and after.text in ("[", ",", ";", "="):
            names.append(token.text)
        i += 1
    return names


_WORDS = {
    "__noinline__": "__attribute__((noinline))",  # not a macro, because libstdc++ uses this word
    "kCUDA": "kCPU",
    "is_cuda": "is_cpu",
}
_NO_NAMES = ("return", "else", "do", "case")  # keywords that may precede a kernel's name
_DEVICE_NAMES = ("DeviceType", "DispatchKey", "Backend")
_HEAP = ("malloc", "calloc", "free")  # see `heap.h`
_REGISTRATIONS = ("TORCH_LIBRARY_IMPL", "STABLE_TORCH_LIBRARY_IMPL")


def translate(source: str, bounds: bool = True) -> str:
    """Return C++ for `cuda_on_cpu.h` with the same number of lines, so that line numbers stay the author's.

    Invalid code, such as an unclosed launch, is left unchanged for the compiler to report. Checks that a tensor is on
    the GPU become checks that it is on the CPU. `bounds`: kernels compare their block with `__launch_bounds__`.
    """
    tokens = _called_kernels(inline_ptx(tokenize(source)))
    tokens = _launch_bounds(tokens) if bounds else tokens
    return _text(_launches(shared_memory(_variables(_device(tokens)))))


_CALLED = '_Pragma("GCC error \\"a __global__ function call must be configured\\"") '  # nvcc's words


def _called_kernels(tokens: list[Token]) -> list[Token]:
    """Let the compiler refuse a kernel that is called like a function: it would run once, on the host."""
    declared = {_declared_at(tokens, at) for at, token in enumerate(tokens) if token.text == "__global__"} - {0}
    names = {tokens[at].text for at in declared}
    result = list(tokens)
    for at, token in enumerate(tokens):
        if token.text not in names or at in declared or token.kind != "word":
            continue
        after, before = next_token(tokens, at + 1), previous_token(tokens, at - 1)
        called = after < len(tokens) and tokens[after].text == "("
        statement = before >= 0 and (
            tokens[before].text in (";", "{", "}", ")", "=") or tokens[before].text in _NO_NAMES
        )
        if called and statement:
            result[at] = Token("word", _CALLED + token.text)
    return result


def _launch_bounds(tokens: list[Token]) -> list[Token]:
    """Let each kernel with `__launch_bounds__` compare its block with them first."""
    checks: dict[int, Token] = {}  # by the index of the body's brace
    for at, token in enumerate(tokens):
        name = _declared_at(tokens, at) if token.text == "__global__" else 0
        if not name:
            continue
        begin = next((i for i in range(at, name) if tokens[i].text == "__launch_bounds__"), 0)
        end = closing(tokens, next_token(tokens, begin + 1)) if begin else -1
        body = next_token(tokens, closing(tokens, next_token(tokens, name + 1)) + 1)
        if 0 < end < body < len(tokens) and tokens[body].text == "{":
            bounds = " ".join(t.text for t in tokens[begin + 1 : end + 1] if not t.blank)
            checks[body] = Token("punctuation", f" ::cuda_on_cpu::keep_bounds{bounds};")
    return [each for at, token in enumerate(tokens) for each in (token, checks.get(at)) if each is not None]


def _declared_at(tokens: list[Token], at: int) -> int:
    """Return the index of the name that the `__global__` at `at` declares, or 0."""
    i = at + 1
    while i < len(tokens) and tokens[i].text not in (";", "{", "}"):
        if tokens[i].text == "(":
            name = previous_token(tokens, i - 1)
            if tokens[name].text not in ("__launch_bounds__", "__attribute__", "__align__"):
                return name if tokens[name].kind == "word" else 0
            i = closing(tokens, i)
            if i < 0:
                return 0
        i += 1
    return 0


def inline_ptx(tokens: list[Token]) -> list[Token]:
    """Rewrite each `asm` with instructions as a call that ends the kernel as not simulated."""
    result: list[Token] = []
    i = 0
    while i < len(tokens):
        begin = next_token(tokens, i + 1)
        while begin < len(tokens) and tokens[begin].text in ("volatile", "__volatile__", "inline", "goto"):
            begin = next_token(tokens, begin + 1)
        is_asm = tokens[i].kind == "word" and tokens[i].text in ("asm", "__asm__", "__asm")
        end = closing(tokens, begin) if is_asm and begin < len(tokens) and tokens[begin].text == "(" else -1
        if end < 0 or tokens[next_token(tokens, begin + 1)].text == '""':  # an empty one only orders memory accesses
            result.append(tokens[i])
            i += 1
            continue
        result.append(Token("punctuation", '::cuda_on_cpu::lacks("inline PTX")'))
        result += [token for token in tokens[i:end] if token.kind == "space" and "\n" in token.text]
        i = end + 1
    return result


def _device(tokens: list[Token]) -> list[Token]:
    result = list(tokens)
    for i, token in enumerate(tokens):
        if token.text in _WORDS:
            result[i] = Token("word", _WORDS[token.text])
        elif token.text == "cpu" and _text(tokens[i - 1 : i + 3]) == ".cpu()":
            result[i] = Token("word", "clone")  # a copy, which the host may read
        elif token.text in _HEAP and _is_called(tokens, i):
            result[i] = Token("word", f"cuda_on_cpu_{token.text}")
            scope = previous_token(tokens, i - 1)
            if scope > 0 and tokens[scope].text == "::":
                result[scope] = Token("space", " ")
                result[previous_token(tokens, scope - 1)] = Token("space", " ")
        elif token.text == "to" and _moves_to_host(tokens, i):
            result[i] = Token("word", "clone().to")
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


def _is_called(tokens: list[Token], at: int) -> bool:
    """Whether the function of the C library named at `at` is called, perhaps with `std::`."""
    begin, before = next_token(tokens, at + 1), previous_token(tokens, at - 1)
    if before < 0 or begin >= len(tokens) or tokens[begin].text != "(":
        return False
    if tokens[before].text == "::":
        return tokens[previous_token(tokens, before - 1)].text == "std"
    if tokens[before].kind == "word":
        return tokens[before].text in _NO_NAMES
    return tokens[before].text not in (".", "->", "*", "&", ">")


def _moves_to_host(tokens: list[Token], at: int) -> bool:
    """Whether the `to` at `at` is a call of a tensor's method with the CPU as the device."""
    begin, before = next_token(tokens, at + 1), previous_token(tokens, at - 1)
    if before < 0 or begin >= len(tokens) or tokens[before].text not in (".", "->") or tokens[begin].text != "(":
        return False
    end = closing(tokens, begin)
    words = [token.text for token in tokens[begin:end] if not token.blank]
    return "kCPU" in words or '"cpu"' in words or any(pair == ("::", "CPU") for pair in pairwise(words))


def _launches(tokens: list[Token]) -> list[Token]:
    """Turn `kernel<<<g, b>>>(arguments)` into `launch([&](auto... a) { kernel(a...); }, Config(g, b), arguments)`."""
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
        call = f"[&](auto... cuda_on_cpu_a) {{ {kernel}(cuda_on_cpu_a...); }}"
        comma = "," if any(not token.blank for token in arguments) else ""
        configured = f"::cuda_on_cpu::Config({config})"
        if _in_braces(arguments):
            launch = f"::cuda_on_cpu::launcher({kernel}, {call}, {configured}){between}({_text(arguments)})"
        else:
            launch = f"::cuda_on_cpu::launch({call}, {configured}{comma}{between}{_text(arguments)})"
        result[start:] = [Token("punctuation", launch)]
        i = finish + 1
    return result


def _in_braces(arguments: list[Token]) -> bool:
    """Whether one of a call's arguments is a list in braces, such as `{x, n}`."""
    i = next_token(arguments, 0)
    begins = True  # an argument
    while i < len(arguments):
        text = arguments[i].text if arguments[i].kind == "punctuation" else ""
        if begins and text == "{":
            return True
        begins = text == ","
        i = next_token(arguments, (max(closing(arguments, i), i) if text in CLOSING else i) + 1)
    return False


def _text(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens)


def _launch(tokens: list[Token], at: int) -> tuple[int, int, int] | None:
    """Return, for the `<<<` at `at`, the indices of `>>>` and of the brackets around the arguments."""
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
    """Return where the expression that names the kernel begins, at the end of the tokens, or -1 without one."""
    i = previous_token(tokens, len(tokens) - 1)
    start = -1
    while i >= 0:
        if tokens[i].text == "]":  # kernels[i]<<<…>>>
            i = previous_token(tokens, opening(tokens, i) - 1)
            continue
        if tokens[i].text == ")":  # (kernel)<<<…>>> or choose(kernel)<<<…>>>
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
        if scope >= 0 and tokens[scope].text in (".", "->"):
            i = previous_token(tokens, scope - 1)
            continue
        if scope < 0 or tokens[scope].text != "::":
            return start
        start = scope
        i = previous_token(tokens, scope - 1)
        if i < 0 or tokens[i].text in _NO_NAMES or not (tokens[i].kind == "word" or tokens[i].text in (">", ">>>")):
            return start
    return start


def _angle_open(tokens: list[Token], at: int) -> int:
    """Return the index of the `<` that the `>` at `at` closes, or -1."""
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
