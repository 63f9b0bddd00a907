"""CUDA's own syntax as C++: launches, shared memory, and the words that speak of the device."""

from __future__ import annotations

from grader.worker.cuda_on_cpu.shared_memory import shared_memory
from grader.worker.cuda_on_cpu.tokens import (
    CLOSING,
    OPENING,
    Token,
    closing,
    next_token,
    opening,
    previous_token,
    tokenize,
)

__all__ = ["translate"]

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
