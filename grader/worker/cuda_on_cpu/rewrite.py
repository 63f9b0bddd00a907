"""CUDA's own syntax as C++: launches, shared memory, and the words that speak of the device."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.worker.cuda_on_cpu.tokens import Token, tokenize

__all__ = ["translate"]

_CLOSING = {"(": ")", "[": "]", "{": "}", "[[": "]]"}
_OPENING = {close: open_ for open_, close in _CLOSING.items()}

_WORDS = {
    "__noinline__": "__attribute__((noinline))",  # libstdc++ uses this word: it cannot be a macro
    "kCUDA": "kCPU",
    "is_cuda": "is_cpu",
}
_DEVICE_NAMES = ("DeviceType", "DispatchKey", "Backend")
_REGISTRATIONS = ("TORCH_LIBRARY_IMPL", "STABLE_TORCH_LIBRARY_IMPL")


def translate(source: str) -> str:
    """C++ for `cuda_on_cpu.h` with the same number of lines, so that line numbers stay the author's.

    What looks wrong (an unclosed launch, say) is left as it is: the compiler will say so at its place. Checks that a
    tensor is on the GPU become checks that it is on the CPU.
    """
    tokens = _device(tokenize(source))
    return "".join(token.text for token in _launches(_shared(tokens)))


# -- walking ----------------------------------------------------------------------------------------------------------


def _next(tokens: list[Token], at: int) -> int:
    """Index of the first token from `at` on that is neither space nor comment (or the length)."""
    while at < len(tokens) and tokens[at].blank:
        at += 1
    return at


def _previous(tokens: list[Token], at: int) -> int:
    """Index of the last such token up to and including `at`, or -1."""
    while at >= 0 and tokens[at].blank:
        at -= 1
    return at


def _close(tokens: list[Token], at: int) -> int:
    """Index of the bracket that closes the one at `at`, or -1."""
    expected: list[str] = []
    for i in range(at, len(tokens)):
        if tokens[i].kind != "punctuation":
            continue
        text = tokens[i].text
        if text in _CLOSING:
            expected.append(_CLOSING[text])
        elif text in _OPENING:
            if expected.pop() != text:
                return -1
            if not expected:
                return i
    return -1


def _open(tokens: list[Token], at: int) -> int:
    """Index of the bracket that the one at `at` closes, or -1."""
    expected: list[str] = []
    for i in range(at, -1, -1):
        if tokens[i].kind != "punctuation":
            continue
        text = tokens[i].text
        if text in _OPENING:
            expected.append(_OPENING[text])
        elif text in _CLOSING:
            if expected.pop() != text:
                return -1
            if not expected:
                return i
    return -1


def _lines(tokens: list[Token]) -> str:
    """Only the line ends of these tokens, for text that is left out."""
    return "".join(c for token in tokens for c in token.text if c == "\n")


# -- words ------------------------------------------------------------------------------------------------------------


def _device(tokens: list[Token]) -> list[Token]:
    result = list(tokens)
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text in _WORDS:
            result[i] = Token("word", _WORDS[token.text])
        elif token.text == "CUDA":
            scope = _previous(tokens, i - 1)
            owner = _previous(tokens, scope - 1)
            if scope > 0 and tokens[scope].text == "::" and owner >= 0 and tokens[owner].text in _DEVICE_NAMES:
                result[i] = Token("word", "CPU")
        elif token.text in _REGISTRATIONS:
            opening = _next(tokens, i + 1)
            end = _close(tokens, opening) if opening < len(tokens) and tokens[opening].text == "(" else -1
            for j in range(opening, end):
                if tokens[j].text == "CUDA":
                    result[j] = Token("word", "CPU")
    return result


# -- shared memory ----------------------------------------------------------------------------------------------------


@dataclass
class _Shared:
    """What has been written so far of the file's shared arrays."""

    count: int = 0
    at_file_scope: set[str] = field(default_factory=set)


def _shared(tokens: list[Token]) -> list[Token]:
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
            before = _previous(result, len(result) - 1)
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
        if text in _CLOSING:
            i = _close(tokens, i)
            if i < 0:
                return 0
        elif text in _OPENING:
            return 0
        i += 1
    return 0


def _extern_shared(tokens: list[Token], at: int) -> int:
    """Index behind `extern … __shared__ … name[];`, or 0 where this `extern` is another."""
    end = _statement_end(tokens, at)
    return end if any(token.text == "__shared__" for token in tokens[at:end]) else 0


def _dynamic(declaration: list[Token], at_file_scope: bool, state: _Shared) -> Token:
    """`extern __shared__ T name[];` as a pointer to the block's dynamic shared memory."""
    words = [t for t in declaration[:-1] if not t.blank and t.text not in ("extern", "__shared__")]
    kept: list[Token] = []
    skip = 0
    for i, token in enumerate(words):  # an alignment says nothing about the pointer
        if i < skip:
            continue
        if token.text in ("__align__", "alignas", "__attribute__") and i + 1 < len(words) and words[i + 1].text == "(":
            skip = _close(words, i + 1) + 1
        else:
            kept.append(token)
    bracket = next((i for i, token in enumerate(kept) if token.text == "["), 0)
    if bracket < 2 or kept[bracket - 1].kind != "word":
        return Token("punctuation", "".join(token.text for token in declaration))
    name = kept[bracket - 1].text
    end = _close(kept, bracket)
    kind = " ".join(token.text for token in kept[: bracket - 1])
    rest = "".join(token.text for token in kept[end + 1 :])  # of a two-dimensional array
    if at_file_scope and name in state.at_file_scope:
        return Token("space", _lines(declaration) or " ")
    if at_file_scope:
        state.at_file_scope.add(name)
    star = f"(*const {name}){rest}" if rest else f"*const {name}"
    cast = f"{kind} (*){rest}" if rest else f"{kind}*"
    text = f"[[maybe_unused]] {kind} {star} = reinterpret_cast<{cast}>(::cuda_on_cpu::dynamic_shared);"
    return Token("punctuation", text + _lines(declaration))


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
        if token.text in _CLOSING:
            i = _close(words, i)
        elif token.kind == "word" and angle == 0 and i > 0 and after.text in ("[", ",", ";"):
            names.append(token.text)
        i += 1
    return names


# -- launches ---------------------------------------------------------------------------------------------------------


def _launches(tokens: list[Token]) -> list[Token]:
    """`kernel<<<grid, block>>>(arguments)` as `launch([&](auto... a) { kernel(a...); }, Config(grid, block), arguments)`."""
    result: list[Token] = []
    i = 0
    while i < len(tokens):
        found = _launch(tokens, i) if tokens[i].text == "<<<" else None
        start = _kernel_start(result) if found else -1
        if not found or start < 0:
            result.append(tokens[i])
            i += 1
            continue
        end_of_config, opening, closing = found
        kernel = _text(result[start:])
        config = _text(_launches(tokens[i + 1 : end_of_config]))
        between = _text(tokens[end_of_config + 1 : opening])
        arguments = _launches(tokens[opening + 1 : closing])
        comma = "," if any(not token.blank for token in arguments) else ""
        result[start:] = [
            Token(
                "punctuation",
                f"::cuda_on_cpu::launch([&](auto... cuda_on_cpu_a) {{ {kernel}(cuda_on_cpu_a...); }}, "
                f"::cuda_on_cpu::Config({config}){comma}{between}{_text(arguments)})",
            )
        ]
        i = closing + 1
    return result


def _text(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens)


def _launch(tokens: list[Token], at: int) -> tuple[int, int, int] | None:
    """For the `<<<` at `at`: the indices of `>>>`, and of the brackets around the arguments."""
    i = at + 1
    while i < len(tokens):
        token = tokens[i]
        if token.text == ">>>":
            opening = _next(tokens, i + 1)
            if opening >= len(tokens) or tokens[opening].text != "(":
                return None
            closing = _close(tokens, opening)
            return (i, opening, closing) if closing > 0 else None
        if token.kind == "punctuation":
            if token.text in _CLOSING:
                i = _close(tokens, i)
                if i < 0:
                    return None
            elif token.text in _OPENING or token.text == ";":
                return None
        i += 1
    return None


def _kernel_start(tokens: list[Token]) -> int:
    """Where the expression that names the kernel begins, the tokens ending with it; -1 if they do not."""
    i = _previous(tokens, len(tokens) - 1)
    start = -1
    while i >= 0:
        if tokens[i].text == ")" and start < 0:  # (kernel)<<<…>>> or choose(kernel)<<<…>>>
            i = start = _open(tokens, i)
            before = _previous(tokens, i - 1)
            if i < 0 or before < 0 or tokens[before].kind != "word" or tokens[before].text == "return":
                return start
            i = before
        elif tokens[i].text in (">", ">>>"):
            i = _previous(tokens, _angle_open(tokens, i) - 1)
            if i < 0:
                return -1
        if tokens[i].kind != "word":
            return start
        start = i
        scope = _previous(tokens, i - 1)
        if scope < 0 or tokens[scope].text != "::":
            return start
        start = scope
        i = _previous(tokens, scope - 1)
        if i < 0 or not (tokens[i].kind == "word" or tokens[i].text in (">", ">>>")) or tokens[i].text == "return":
            return start
    return start


def _angle_open(tokens: list[Token], at: int) -> int:
    """Index of the `<` that the `>` at `at` closes, or -1."""
    depth = 0
    i = at
    while i >= 0:
        text = tokens[i].text
        if tokens[i].kind in ("punctuation", "launch"):
            if text in _OPENING:
                i = _open(tokens, i)
                if i < 0:
                    return -1
            elif text in (">", ">>>"):
                depth += len(text)
            elif text == "<":
                depth -= 1
                if depth == 0:
                    return i
            elif text in (";", "{") or text in _CLOSING:
                return -1
        i -= 1
    return -1
