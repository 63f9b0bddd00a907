"""Which kernels a source of CUDA C++ defines, and what C++ lets Python call them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grader.worker.cuda_on_cpu.tokens import Token, closing, next_token, opening, previous_token, tokenize

__all__ = ["Kernel", "entries", "kernels_in"]

_DEFINE = r"#\s*define\s+{name}\s+(\d+)\b|\bconstexpr\s+(?:static\s+)?(?:int|unsigned)\s+{name}\s*=\s*(\d+)"


@dataclass(frozen=True)
class Kernel:
    """A `__global__` function. Without `extern "C"` its symbol is mangled, so its name alone does not find it."""

    name: str
    plain: bool  # its symbol is its name
    template: bool
    most_threads: int | None  # of a block, by its launch bounds


def kernels_in(source: str) -> list[Kernel]:
    """The kernels in the order of the source."""
    tokens = tokenize(source)
    code = [token for token in tokens if not token.blank]
    return [
        found
        for at, token in enumerate(code)
        if token.text == "__global__" and (found := _kernel(code, at, source)) is not None
    ]


def entries(names: Sequence[str]) -> str:
    """C++ behind the source: for the kernel number i, `cuda_on_cpu_enter_i` and `cuda_on_cpu_parameters_i`."""
    return "".join(
        f'\nextern "C" void cuda_on_cpu_enter_{i}(const unsigned* cuda_on_cpu_s, size_t cuda_on_cpu_b, '
        "int cuda_on_cpu_l, void** cuda_on_cpu_a) {\n"
        f"    ::cuda_on_cpu::enter(({name}), cuda_on_cpu_s, cuda_on_cpu_b, cuda_on_cpu_l, cuda_on_cpu_a);\n}}\n"
        f'extern "C" int cuda_on_cpu_parameters_{i}() {{ return ::cuda_on_cpu::parameters_of(({name})); }}\n'
        for i, name in enumerate(names)
    )


def _kernel(code: list[Token], at: int, source: str) -> Kernel | None:
    begin, bound = at + 1, None
    while begin < len(code) and code[begin].text != "(":
        if code[begin].text in ("__launch_bounds__", "__attribute__") and code[begin + 1 : begin + 2]:
            end = closing(code, begin + 1)
            if end < 0:
                return None
            if code[begin].text == "__launch_bounds__":
                bound = _number(code[begin + 2].text, source)
            begin = end
        begin += 1
    if begin >= len(code) or code[begin - 1].kind != "word":
        return None
    end = closing(code, begin)
    if end < 0 or next_token(code, end + 1) >= len(code) or code[end + 1].text != "{":
        return None  # a declaration
    before = _before(code, at)
    linkage = any(token.text == '"C"' for token in before) or _in_block_of_c(code, at)
    return Kernel(code[begin - 1].text, linkage, any(token.text == "template" for token in before), bound)


def _before(code: list[Token], at: int) -> list[Token]:
    """What stands before `__global__` in the same declaration."""
    start = at
    while start > 0 and code[start - 1].text not in (";", "}", "{"):
        start -= 1
    return code[start:at]


def _in_block_of_c(code: list[Token], at: int) -> bool:
    """Whether an `extern "C" {` is open here."""
    i = previous_token(code, at - 1)
    while i >= 0:
        if code[i].text == "}":
            i = opening(code, i)
        elif code[i].text == "{" and i >= 2 and code[i - 1].text == '"C"' and code[i - 2].text == "extern":
            return True
        i -= 1
    return False


def _number(text: str, source: str) -> int | None:
    if text.isdigit():
        return int(text)
    found = re.search(_DEFINE.format(name=re.escape(text)), source)
    return int(found[1] or found[2]) if found else None
