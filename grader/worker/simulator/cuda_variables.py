"""Rewrite CUDA's declarations of variables as C++: those in shared memory, and the global ones of the GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from grader.worker.simulator.cuda_tokens import (
    CLOSING,
    OPENING,
    Token,
    closing,
    joined,
    next_token,
    previous_token,
)


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
        return Token("punctuation", joined(declaration))
    name = kept[bracket - 1].text
    end = closing(kept, bracket)
    kind = " ".join(token.text for token in kept[: bracket - 1])
    rest = joined(kept[end + 1 :])  # of a two-dimensional array
    ends = "".join(c for c in joined(declaration) if c == "\n")
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
    text = joined(declaration)
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


_VARIABLES = {"__device__": "variable", "__constant__": "constant", "__managed__": "managed"}  # spaces in `regions.h`


def variables(tokens: list[Token]) -> list[Token]:
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
            words = {token.text for token in tokens[i:end]}
            space = "::cuda_on_cpu::Space::" + [space for word, space in _VARIABLES.items() if word in words][-1]
            text = f' static ::cuda_on_cpu::Variable cuda_on_cpu_variable_{count}({name}, "{name}", {space});'
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
