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
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from grader.worker.simulator.cuda_tokens import (
    CLOSING,
    OPENING,
    Token,
    closing,
    joined,
    name_of_function,
    next_token,
    opening,
    previous_token,
    tokenize,
)
from grader.worker.simulator.cuda_variables import shared_memory, variables

INCLUDE = Path(__file__).parent / "include"
_PATTERN, _ZERO = "-ftrivial-auto-var-init=pattern", "-ftrivial-auto-var-init=zero"
COMPILER_FLAGS = [
    "-O1",
    "-std=c++20",
    _PATTERN,  # a variable without a value is -1.7e38, not by chance what was right before
    "-fno-strict-aliasing",  # reading float* as float4* is common in CUDA
    "-fno-tree-sra",  # it splits a load or store of a float4 into four
    "-g1",  # the lines of accesses
    "-fsanitize=thread,alignment,bounds,signed-integer-overflow",  # `instrumented.h` is its library: link without it
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


_MACRO = re.compile(r"(?:-D|--?define-macro=)(\w+(?:\([^()]*\))?)(?:=(.*))?\Z", re.DOTALL)
_TO_VOID = re.compile(r"\((?:const)?void(?:const)?\*\)|reinterpret_cast<(?:const)?void(?:const)?\*>")
_WORDS = {
    "__noinline__": "__attribute__((noinline))",  # not a macro, because libstdc++ uses this word
    "kCUDA": "kCPU",
    "is_cuda": "is_cpu",
}
_NO_NAMES = ("return", "else", "do", "case")  # keywords that may precede a kernel's name
_DEVICE_NAMES = ("DeviceType", "DispatchKey", "Backend")
_HEAP = ("malloc", "calloc", "free")  # see `heap.h`
_REGISTRATIONS = ("TORCH_LIBRARY_IMPL", "STABLE_TORCH_LIBRARY_IMPL")


def macros_of(flags: Sequence[str]) -> list[str]:
    """Return a `#define` for each macro in a compiler's flags, to be put after the simulator's own headers.

    A flag `-D` may have its macro in the next one.
    """
    whole = [f"-D{flag}" if before in ("-D", "--define-macro") else flag for before, flag in pairwise(["", *flags])]
    found = (each for each in map(_MACRO.match, whole) if each)
    return [f"#define {macro[1]} {1 if macro[2] is None else macro[2]}" for macro in found]


def translate(source: str, bounds: bool = True) -> str:
    """Return C++ for `cuda_on_cpu.h` with the same number of lines, so that line numbers stay the author's.

    Invalid code, such as an unclosed launch, is left unchanged for the compiler to report. Checks that a tensor is on
    the GPU become checks that it is on the CPU. Each kernel tells its name and its template arguments. `bounds`: it
    compares its block with `__launch_bounds__`.
    """
    tokens = _typed_launches(_called_kernels(inline_ptx(tokenize(source))))
    tokens = _begin_kernels(tokens, bounds)
    return joined(_launches(shared_memory(variables(_device(_products_of_blocks(tokens))))))


_CALLED = '_Pragma("GCC error \\"a __global__ function call must be configured\\"") '  # nvcc's words


def _called_kernels(tokens: list[Token]) -> list[Token]:
    """Let the compiler refuse a kernel that is called like a function: it would run once, on the host."""
    declared = {name_of_function(tokens, at) for at, token in enumerate(tokens) if token.text == "__global__"} - {0}
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


def _typed_launches(tokens: list[Token]) -> list[Token]:
    """Remove the cast to `void*` from the kernel that `cudaLaunchKernel` gets, which needs its type here."""
    result = list(tokens)
    for at, token in enumerate(tokens):
        begin = next_token(tokens, at + 1)
        if token.text != "cudaLaunchKernel" or begin >= len(tokens) or tokens[begin].text != "(":
            continue
        cast = end = next_token(tokens, begin + 1)
        while end < len(tokens) and tokens[end].text not in (")", ">", ","):
            end = next_token(tokens, end + 1)
        if _TO_VOID.fullmatch("".join(each.text for each in tokens[cast : end + 1] if not each.blank)):
            result[cast : end + 1] = [each if each.blank else Token("space", " ") for each in tokens[cast : end + 1]]
    return result


def _begin_kernels(tokens: list[Token], bounds: bool) -> list[Token]:
    """Let each kernel first tell its name and, if `bounds`, compare its block with its `__launch_bounds__`."""
    calls: dict[int, Token] = {}  # by the index of the body's brace
    for at, token in enumerate(tokens):
        name = name_of_function(tokens, at) if token.text == "__global__" else 0
        if not name:
            continue
        begin = next((i for i in range(at, name) if tokens[i].text == "__launch_bounds__"), 0)
        end = closing(tokens, next_token(tokens, begin + 1)) if begin else -1
        after = closing(tokens, next_token(tokens, name + 1))
        body = next_token(tokens, after + 1)
        if 0 < after < body < len(tokens) and tokens[body].text == "{":
            most = " ".join(token.text for token in tokens[begin + 1 : end + 1] if not token.blank)
            check = f" ::cuda_on_cpu::keep_bounds{most};" if bounds and 0 < end < body else ""
            calls[body] = Token("punctuation", f"{check} ::cuda_on_cpu::entered(__PRETTY_FUNCTION__);")
    return [each for at, token in enumerate(tokens) for each in (token, calls.get(at)) if each is not None]


_BEFORE_A_PRODUCT = ("=", "(", ",", "[", "{", "+", "<", ">", "?", ":", "return")  # they bind less tightly


def _products_of_blocks(tokens: list[Token]) -> list[Token]:
    """Let each product of a `blockIdx.x` and a variable notice that it wraps around."""
    result = list(tokens)
    for at, token in enumerate(tokens):
        dot = next_token(tokens, at + 1)
        end = next_token(tokens, dot + 1)
        if token.text != "blockIdx" or end >= len(tokens) or tokens[dot].text != ".":
            continue
        before, after = previous_token(tokens, at - 1), next_token(tokens, end + 1)
        other, then = previous_token(tokens, before - 1), next_token(tokens, after + 1)
        if before <= 0 or then >= len(tokens):
            continue
        second = tokens[before].text == "*" and (tokens[other].kind == "word" or tokens[other].text in OPENING)
        first = tokens[before].text in _BEFORE_A_PRODUCT and tokens[after].text == "*"
        if second or (first and (tokens[then].kind == "word" or tokens[then].text == "(")):
            result[at] = Token("word", "::cuda_on_cpu::Coordinate(blockIdx")
            result[end] = Token("word", f"{tokens[end].text}, __LINE__)")
    return result


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
        elif token.text == "cpu" and joined(tokens[i - 1 : i + 3]) == ".cpu()":
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
        kernel = joined(result[start:])
        config = joined(_launches(tokens[i + 1 : end_of_config]))
        between = joined(tokens[end_of_config + 1 : begin])
        arguments = _launches(tokens[begin + 1 : finish])
        call = f"[&](auto... cuda_on_cpu_a) {{ {kernel}(cuda_on_cpu_a...); }}"
        comma = "," if any(not token.blank for token in arguments) else ""
        configured = f"::cuda_on_cpu::Config({config})"
        if _in_braces(arguments):
            launch = f"::cuda_on_cpu::launcher({kernel}, {call}, {configured}){between}({joined(arguments)})"
        else:
            launch = f"::cuda_on_cpu::launch({call}, {configured}{comma}{between}{joined(arguments)})"
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
