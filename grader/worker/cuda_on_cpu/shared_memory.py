"""`__shared__` and `extern __shared__` as plain C++ over the memory of `launch.h`."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.worker.cuda_on_cpu.tokens import CLOSING, OPENING, Token, closing, line_ends, previous_token

__all__ = ["shared_memory"]


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
