"""Compile the device code of a CUDA C++ source for a GPU, with NVRTC, where there is neither a GPU nor nvcc.

NVRTC takes device code only, so everything else is blanked out first; the lines stay where they are. An error that may
come from what was left out says nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.protocol.target import target
from grader.worker.simulator.cuda_library import launched_instances
from grader.worker.simulator.cuda_sides import ADDED_WORDS, CALLED, EXTENDED, NEEDS_FLAG, OF_THE_GPU, Part, misuses
from grader.worker.simulator.cuda_source import macros_of
from grader.worker.simulator.cuda_tokens import (
    CLOSING,
    TYPES,
    Token,
    closing,
    declarations,
    joined,
    name_of_function,
    next_token,
    tokenize,
)
from grader.worker.simulator.cuda_variables import declared
from grader.worker.toolchain import forked
from grader.worker.toolchain.compiler_errors import first_error, line_mark
from grader.worker.toolchain.machine_facts import kernel_facts
from grader.worker.toolchain.nvrtc import Compiled, compiled, no_cache_options

_DEVICE = ("__global__", *ADDED_WORDS, "constexpr", "consteval")
_OF_HOST = re.compile(r"\b(?:std|torch|at|c10|py|pybind11)\s*::")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\)*", re.MULTILINE)
_INCLUDE = re.compile(r"\s*#\s*include\s*[<\"]([^>\"]+)[>\"]")
_OF_CUDA = re.compile(r"cub/|thrust/|cuda/|cooperative_groups|mma\.h|math_constants|cuda_|nvtx")
_PRELUDE = """
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef unsigned long long uintptr_t; typedef long long intptr_t;
namespace std {
using ::int8_t, ::int16_t, ::int32_t, ::int64_t, ::uint8_t, ::uint16_t, ::uint32_t, ::uint64_t, ::size_t;
}
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define M_PI 3.14159265358979323846
#define M_PI_F 3.14159274f
#define assert(condition) ((void)(condition))
"""
_OURS = re.compile(r"^(?:(?:cell|cuda_source)\(\d+\): error|\s*ptxas (?:error|fatal))", re.MULTILINE)
_NOT_NVRTCS = re.compile(r"in JIT mode|catastrophic")  # a header that NVRTC cannot read
# Names that only the host has, unless the submission has its own function of this name.
_HOST_WORDS = """
    rand srand rand_r random srandom drand48 getenv exit abort atexit system sleep usleep nanosleep time
    gettimeofday fprintf sprintf snprintf puts putchar perror fopen fclose fflush fwrite fread scanf sscanf atoi
    atof strtol strtod strlen strcmp strncmp strcpy qsort bsearch std::rand std::srand std::exit std::abort
    std::time std::getenv std::cout std::cerr std::clog std::cin std::endl std::ostream std::istream
    std::stringstream std::ostringstream std::ofstream std::ifstream std::vector std::map std::unordered_map
    std::set std::unordered_set std::list std::deque std::queue std::stack std::string std::to_string std::function
    std::thread std::mutex std::unique_ptr std::shared_ptr std::make_unique std::make_shared std::sort
    std::accumulate std::random_device std::mt19937 std::exception std::runtime_error cudaDeviceSynchronize
    cudaStreamSynchronize cudaEventSynchronize cudaMalloc cudaMallocManaged cudaMallocHost cudaHostAlloc cudaFree
    cudaFreeHost cudaMemcpy cudaMemset cudaMemcpyToSymbol cudaMemcpyFromSymbol cudaGetDeviceProperties
    cudaFuncSetAttribute cudaEventRecord cudaStreamCreate
"""
_HOST_NAMES = frozenset(_HOST_WORDS.split())
_HOST_OBJECTS = ("cout", "cerr", "clog", "cin", "endl", "ostream", "istream", "vector", "map", "unordered_map", "set",
    "unordered_set", "list", "deque", "queue", "stack", "string", "function", "thread", "mutex")  # fmt: skip
_UNDEFINED = re.compile(r'identifier "(?P<name>[\w:]+)" is undefined|"std" has no member "(?P<of_std>\w+)"')
_TYPE = re.compile(r"[^(]*\b(?:struct|class)\s+(?P<name>\w+)[^(]*", re.DOTALL)
_LAUNCHED = re.compile(r"[\w:]+\s*(?P<arguments><[^;{}]*>)?\s*\Z")
_DELETED = re.compile(r'function "(?P<name>[^"]+)".* cannot be referenced -- it is a deleted function')
_UNEVALUATED = re.compile(r"\b(?:sizeof|decltype|noexcept)\b")  # nvcc lets these name functions of the host
_OF_ONE_TYPE = r"\btemplate\s*<\s*(?:typename|class)\s+(\w+)\s*>[^;{{}}(]*\b{name}\s*\(([^()]*)\)"
_CONSTANT = "expression must be a modifiable lvalue"  # also for `__constant__` variables
_AN_ERROR = re.compile(r"^(?P<file>cell|cuda_source)\((?P<line>\d+)\): error(?: #[\w-]+)?: (?P<text>.+)$", re.MULTILINE)
_NO_VARIABLES = ("using", "typedef", "template", "extern", "static_assert", "friend", *TYPES)
# Errors that headers or host code may be missing for.
_UNKNOWN = re.compile(
    r"is undefined|not open|no directories|must be a |has no (?:actual )?member|no instance of|not a template|"
    r"incomplete type|catastrophic|storage class|expected an? |expected \"|is not a type|undeclared|not declared"
)


class Unsure(Exception):
    """It is not known whether the code compiles; the message is the reason."""


_sources: list[tuple[str, Sequence[str]]] = []  # of this process, with nvcc's flags


def start(source: str, cell: str, flags: Sequence[str] = ()) -> None:
    """Start to compile `source` for a GPU; `flags` are nvcc's."""
    _sources.append((source, flags))
    forked.add(lambda: _failure(source, cell, flags))


def facts() -> list[dict[str, Any]]:
    """Return `machine_facts.kernel_facts` of all sources that were built here, as far as NVRTC can compile them.

    Templates are compiled for the instances whose launches were listed.
    """
    found: list[dict[str, Any]] = []
    for source, flags in _sources:
        with contextlib.suppress(ImportError, RuntimeError):
            code, report = f"{_prelude(flags)}{device_code(source).code}", ("--ptxas-options=-v", *no_cache_options())
            launched = [each for each in launched_instances() if re.search(rf"\b{_name_of(each)}\b", source)]
            answer = _nvrtc(code, *report, instances=launched)
            if answer.error and launched:  # GCC may write a type in another way
                answer = _nvrtc(code, *report)
            found += kernel_facts(answer.ptx, answer.log)
    return found


def _name_of(instance: str) -> str:
    return instance.partition("<")[0].rpartition("::")[2]


def _prelude(flags: Sequence[str]) -> str:
    return _PRELUDE + "".join(f"{line}\n" for line in macros_of(flags))


def _failure(source: str, cell: str, flags: Sequence[str]) -> dict[str, Any]:
    try:
        text = refusal(source, line_mark(source, "cuda_source", cell), flags)
    except Unsure as unsure:
        return {"absent": str(unsure)}
    if not text:
        return {}
    line, message = first_error(text, cell)
    return {"failure": {"kind": "compile", "message": message, "line": line, "detail": text[:2000]}}


def refusal(source: str, mark: str, flags: Sequence[str] = ()) -> str:
    """Return the errors of a GPU's compiler for the source, whose `#line` is `mark`; "" if it compiles.

    `flags`: nvcc's, for its macros, and whether it accepts lambdas with `__device__`.

    Raises:
        Unsure: NVRTC cannot tell.
    """
    extended = any(EXTENDED in flag for flag in flags)
    found = device_code(source, extended)
    prelude = _prelude(flags) + (mark or '#line 1 "cuda_source"\n')
    first, file = mark.split()[1:3] if mark else ("1", '"cuda_source"')
    if found.calls:
        number, said = found.calls[0]
        return f"{file.strip(chr(34))}({int(first) + number - 1}): error: {said}"
    try:
        text = _nvrtc(prelude + found.code).error
    except (ImportError, RuntimeError):
        raise Unsure("NVRTC is not installed") from None
    if of_host := _of_host(text, found, int(first)):
        return of_host
    message = first_error(text)[1] if text else ""
    elsewhere = text and not _OURS.search(text)
    if elsewhere or (extended and NEEDS_FLAG in message) or _UNKNOWN.search(message) or _NOT_NVRTCS.search(text):
        raise Unsure(f"NVRTC alone cannot compile it ({message})")
    if not text and found.without_members:
        log = _nvrtc(prelude + found.without_members, instances=found.instances).error
        return _of_a_member(log, found, int(first))
    return text


def _of_a_member(text: str, found: DeviceCode, first: int) -> str:
    """Return the error of device code that calls a deleted member function, in nvcc's words for the host's, or ""."""
    lines = found.code.split("\n")
    for error in _AN_ERROR.finditer(text):
        line = int(error["line"]) - first + 1
        if not (caller := found.caller(line)) or _UNEVALUATED.search(lines[line - 1]):
            continue
        if deleted := _DELETED.search(error["text"]):
            return f"{error['file']}({error['line']}): error: {CALLED.format(deleted['name'], caller.kind)}"
    return ""


def _of_host(text: str, found: DeviceCode, first: int) -> str:
    """Return the error of a kernel that uses what only the host has or writes to a constant, as nvcc says it, or ""."""
    for error in _AN_ERROR.finditer(text):
        line, said = int(error["line"]), error["text"]
        if (caller := found.caller(line - first + 1)) is None:
            continue
        if said.startswith(_CONSTANT):
            return f"{error['file']}({line}): error: {_CONSTANT}: a `__constant__` or const variable cannot be written"
        if not (undefined := _UNDEFINED.search(said)):
            continue
        name = undefined["name"] or f"std::{undefined['of_std']}"
        if name in found.variables:
            why = f'identifier "{name}" is undefined in device code: a variable without `__device__` is the host\'s'
        elif name in _HOST_NAMES:
            why = CALLED.format(name, caller.kind)
            if name.startswith("std::") and name[5:] in _HOST_OBJECTS:
                why = f'identifier "{name}" is undefined in device code: it is the host\'s'
        else:
            continue
        return f"{error['file']}({line}): error: {why}"
    return ""


def _nvrtc(code: str, *more: str, instances: Sequence[str] = ()) -> Compiled:
    architecture = f"--gpu-architecture=sm_{target()}"
    options = [architecture, "-default-device", "--device-int128", "-std=c++20", "-w", *more]
    return compiled(code.encode(), "device_code", [*options, *map("-I{}".format, _headers())], instances)


def _headers() -> list[Path]:
    """Return the folders of CUDA's headers that pip installs."""
    found = importlib.util.find_spec("nvidia")
    roots = list(found.submodule_search_locations or ()) if found else []
    found_here = [path for root in roots for path in Path(root).glob("cu*/include")]
    return [folder for path in found_here for folder in (path, path / "cccl") if folder.is_dir()]


@dataclass
class _Function:
    """A function for the GPU: its first and last line in the source, and `__global__ function("name")`."""

    first: int
    last: int
    kind: str


@dataclass
class DeviceCode:
    """The parts of a CUDA C++ source.

    Attributes:
        code: the source with blanks in place of host code.
        without_members: the same with `= delete` in place of the bodies of member functions without `__device__`, which
            NVRTC would compile for the GPU; "" if there are none.
        instances: the instances of kernel templates to compile, such as `kernel<Square>`.
        calls: calls across the border of host and device, and the host's uses of a kernel's variables: the line, and
            what nvcc says.
        variables: names of variables that only the host has.
        functions: those that run on the GPU only.
    """

    code: str
    calls: list[tuple[int, str]]
    variables: set[str]
    functions: list[_Function]
    without_members: str
    instances: list[str]

    def caller(self, line: int) -> _Function | None:
        """The function for the GPU that contains this line of the source."""
        return next((each for each in self.functions if each.first <= line <= each.last), None)


def device_code(source: str, extended: bool = False) -> DeviceCode:
    """Tell apart the code for the GPU and the host's, of a CUDA C++ source."""
    bare = _DIRECTIVE.sub(lambda found: _blank(found[0]), source)
    tokens = tokenize(bare)
    parts = [_part(tokens, *each) for each in declarations(tokens, 0, len(tokens))]
    texts = [token.text for token in tokens]
    macros = " ".join(found[0] for found in _DIRECTIVE.finditer(source))
    calls = misuses(tokens, parts, extended)
    members = list(_host_members(tokens, parts))
    if any(word in macros for word in OF_THE_GPU):
        calls, members = [], []  # a macro may mark functions for the GPU
    variables: set[str] = set()
    for part in parts:
        names = _host_variables(tokens[part.begin : part.end])
        variables.update(names)
        if part.host or names:
            texts[part.begin : part.end] = [_blank(text) for text in texts[part.begin : part.end]]
    code = _with_directives("".join(texts), source)
    for _, begin, end in members:
        texts[begin:end] = ["= delete;", *map(_blank, texts[begin + 1 : end])]
    without_members = _with_directives("".join(texts), source) if members else ""
    instances = list(_instances(tokens, {name for name, _, _ in members}))
    return DeviceCode(code, calls, variables, list(_functions(tokens, parts)), without_members, instances)


def _host_members(tokens: list[Token], parts: list[Part]) -> Iterator[tuple[str, int, int]]:
    """Return the type and the body of each member function without `__device__`, except constructors."""
    for part in parts:
        brace = next((at for at in range(part.begin, part.end) if tokens[at].text == "{"), part.begin)
        of_type = _TYPE.fullmatch(joined(tokens[part.begin : brace]))
        if part.host or of_type is None:
            continue
        for begin, body, end in declarations(tokens, brace + 1, closing(tokens, brace)):
            head = [token.text for token in tokens[begin:body]]
            marked = any("constexpr" in word or "device" in word.lower() for word in head)  # also `C10_HOST_DEVICE`
            name = tokens[name_of_function(tokens, begin - 1)].text
            if tokens[body].text == "{" and "(" in head and not marked and name != of_type["name"]:
                yield of_type["name"], body, end


def _instances(tokens: list[Token], types: set[str]) -> Iterator[str]:
    """Return the instances of templates in launches, as far as given or deduced from one of the types."""
    for at, token in enumerate(tokens):
        if token.text == "<<<" and types:
            name = _LAUNCHED.search(joined(tokens[:at]))
            if name and name["arguments"]:
                yield name[0]
            elif name:
                yield from (f"{name[0].strip()}<{each}>" for each in sorted(_deduced(tokens, at, name[0], types)))


def _deduced(tokens: list[Token], at: int, name: str, types: set[str]) -> set[str]:
    """Return the types of the launch's arguments whose parameter has the type of the template, such as `F f`."""
    template = re.search(_OF_ONE_TYPE.format(name=name.strip().rpartition(":")[2]), joined(tokens))
    begin = next((i for i in range(at, len(tokens)) if tokens[i].text == ">>>"), len(tokens)) + 1
    begin = next_token(tokens, begin)
    if template is None or begin >= len(tokens) or tokens[begin].text != "(":
        return set()
    arguments: list[list[str]] = [[]]
    i, end = begin + 1, closing(tokens, begin)
    while i < end:
        if tokens[i].text == ",":
            arguments.append([])
        elif not tokens[i].blank:
            arguments[-1].append(tokens[i].text)
        opens = tokens[i].kind == "punctuation" and tokens[i].text in CLOSING
        i = (closing(tokens, i) if opens else i) + 1
    parameters = [set(re.findall(r"\w+|\*", each)) for each in template[2].split(",")]
    pairs = zip(parameters, arguments, strict=False)
    return {words[0] for has, words in pairs if words and words[0] in types and template[1] in has and "*" not in has}


def _host_variables(declaration: list[Token]) -> list[str]:
    """Return the names that a declaration at file scope declares as variables of the host.

    A constant number is known to device code too, but an array of constants is not.
    """
    words = [token.text for token in declaration if not token.blank]
    first = next((word for word in words if word not in ("static", "inline", "{", "}")), "")
    if not words or words[-1] != ";" or first in _NO_VARIABLES or set(words) & {*ADDED_WORDS, "constexpr", "operator"}:
        return []
    head = words[: words.index("=")] if "=" in words else words
    if "(" in head or "{" in head or ("const" in words and "[" not in head):
        return []
    return declared(declaration)


def _functions(tokens: list[Token], parts: list[Part]) -> Iterator[_Function]:
    for part in parts:
        head = {token.text for token in tokens[part.begin : part.body]}
        kind = next((word for word in ("__global__", "__device__") if word in head), "")
        if kind and "__host__" not in head and part.body < part.end and tokens[part.body].text == "{":
            first = 1 + sum(token.text.count("\n") for token in tokens[: part.body])
            last = first + sum(token.text.count("\n") for token in tokens[part.body : part.end])
            yield _Function(first, last, f'{kind} function("{part.name}")')


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _with_directives(code: str, source: str) -> str:
    """Put the directives back, but of the headers only CUDA's, which NVRTC can read."""
    for found in _DIRECTIVE.finditer(source):
        include = _INCLUDE.match(found[0])
        kept = include is None or (_OF_CUDA.match(include[1]) and not include[1].startswith("cuda_runtime"))
        code = code[: found.start()] + (found[0] if kept else _blank(found[0])) + code[found.end() :]
    return code


def _part(tokens: list[Token], begin: int, body: int, end: int) -> Part:
    head = [token for token in tokens[begin:body] if not token.blank]
    words = [token.text for token in head]
    if "(" not in words:
        return Part(begin, end, body, "", bool(_OF_HOST.search(joined(tokens[begin:end]))))
    at = name_of_function(tokens, begin - 1)
    name = tokens[at].text if at else ""
    device = any(word in _DEVICE for word in words) or words[0] in ("using", "typedef", "static_assert", *TYPES)
    return Part(begin, end, body, name, not device)
