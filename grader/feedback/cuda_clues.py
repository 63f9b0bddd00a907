"""Bugs of CUDA C++ that its text shows, and that no GPU names: missing barriers and atomics, variables of the host.

The search begins only once the output is wrong or the launch has failed, so that right work is never suspected.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.worker.simulator.cuda_tokens import closing, declarations, joined, next_token, tokenize

_IN_STEP = (
    "`__syncwarp()` is missing: the threads of a warp do not run in step. Put one between a write to shared memory and "
    "another thread's read of it, and one before that element is overwritten. `volatile` does not wait."
)
_NO_BARRIER = (
    "A thread reads what another thread writes to `{}`. No `__syncthreads()` is between the two, so the result "
    "depends on which of them runs first."
)
_ONE_BARRIER = (
    "A loop fills `{}` and other threads read it there, but the loop has only one barrier. No `__syncthreads()` is "
    "between the two, either within a step or from one step to the next. Put one after filling it, and "
    "one after reading it."
)
_NO_ATOMIC = (
    "Every block reads `{0}`, adds to it and writes it back. Blocks run at the same time and in no order, so sums are "
    "lost. Add with `atomicAdd`, or let each block write its own element and combine these in a second launch."
)
_ASSIGNED = (
    "The host assigns to `{0}`, but a `__device__` or `__constant__` variable exists twice: the kernel reads the GPU's "
    "copy, which stays 0. Copy with `cudaMemcpyToSymbol`."
)
_ADDRESS = "A launch passes the address of `{}`. A kernel cannot use the host's variables by their address."
_COPIED = "Pass numbers by value. Copy an array to memory from `cudaMalloc` with `cudaMemcpy`."
_OF_THE_HOST = "A launch passes memory that the host allocated, `{}`, which a kernel cannot use on most GPUs."
_USED = "Host code uses GPU memory: it reads or writes elements of `{}`."
_COPIED_BACK = "Copy the values to the host with `cudaMemcpy`, which also waits for the kernel, or compute in a kernel."
_LARGEST_INDEX = (
    "A kernel accessed memory outside its arrays, in shared memory or in global memory, or wrote to an input.",
    "Compare the size of each `__shared__` array with its largest index, and check every index of other arrays with an "
    "`if`.",
)
_ONE_VARIABLE = (
    "Several threads update the same element at once, and updates are lost: each one adds to `{}`. Add with "
    "`atomicAdd`, or let each thread sum in a variable of its own and combine these sums."
)
_NO_VALUE = (
    "The kernel adds to `{}` before it has a value: it begins with whatever was in memory. Set it to 0 where it is "
    "declared."
)
_INTEGERS = (
    "In C++, `{}` is 0: a quotient of two integers has no fraction. Write one of them with a decimal point, and an "
    "`f` for a float: `1.0f`."
)
_TRUNCATED = "`{}` is an `int`, which drops the fraction of each value that it gets. Declare it as a `float`."
_QUOTIENT = re.compile(
    r"(?:[=(,{]|(?<!\d[eE])[-+]|\breturn)\s*(?P<quotient>(?P<above>\d{1,9})\s*/\s*(?P<below>\d{1,9}))(?![\w.])"
)
_OWN_INDEX = re.compile(r"\b(\w+)\s*=\s*[^;,]*\bthreadIdx\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VOLATILE = re.compile(r"\bvolatile\b[\w\s]{0,80}?[*&\s]\s{0,20}(\w+)\s{0,20}[\[=,);]")
_IN_WARP = re.compile(r"\bif\s*\([^(){};]*<\s*(?:32|warpSize)\s*\)\s*\{(?P<body>(?:[^{}]|\{[^{}]*\})*)\}")
_ADDS_NEIGHBOUR = re.compile(r"\b(\w+)\s*\[[^\]]*\]\s*(?:\+=|=[^=;][^;]*\+)\s*\1\[[^\]]*\+")
_WAITS = re.compile(r"__sync\w+|\w*[Bb]arrier\w*|\bbar\.|cooperative_groups|\bcg::|\.sync\b|memcpy_async|volatile")
_TWO_BUFFERS = re.compile(r"\^|%|!\s*\w|&\s*1\b|1\s*-\s*\w")  # a loop that fills one while it reads the other
_SHARED = re.compile(r"__shared__[^;]*;")
_SUBSCRIPTS = r"((?:\s*\[(?:[^\[\]]|\[[^\[\]]*\])*\])+)"
_MEMBER = r"(?:\s*\.\s*\w+)?(?:\s*\[[^\[\]]*\])*"
_MOST_LOOPS = 100  # of a kernel
_OF_THE_GPU = re.compile(
    r"(?:__constant__|__device__)\s{1,20}[\w:<>$ ]{0,120}?\b(\w+)\s*(?:\[[^\]]*\])*\s*(?:=[^;{]*)?;"
)
_HOST_ARRAY = re.compile(r"\b(?:\w+_t|unsigned|int|long|short|char|float|double)\s+(\w+)\s*\[[^\]]*\]\s*[={;]")
_LAUNCH = re.compile(r"<<<(?P<shape>[^;]{1,200}?)>>>\s{0,20}\((?P<arguments>[^;]{0,600}?)\)\s{0,20};")


@dataclass(frozen=True)
class _Function:
    """A function of the source: what comes before its body, and the body."""

    head: str
    body: str

    @property
    def of_the_gpu(self) -> bool:
        return "__global__" in self.head or "__device__" in self.head


def wrong_result(source: str) -> str:
    """A sentence about a bug in CUDA C++ `source` that makes a result wrong, or ""."""
    code = _COMMENT.sub("", source)
    if _warp_in_step(code):
        return _IN_STEP
    functions = list(_functions(code))
    kernels = [each for each in functions if each.of_the_gpu]
    found = (
        _missing_barrier(code, kernels), _assigned_by_the_host(code, functions), _missing_atomic(code, kernels),
        _shared_sum(kernels), _missing_start(code, kernels), _quotient(kernels), _whole_numbers(kernels),
    )  # fmt: skip
    return next(filter(None, found), "")


_LESS_OR = re.compile(r"\bif\s*\([^;{}|]*<(?!\s*0)[^;{}|=<]*\|\|[^;{}|=<]*<(?!\s*0)[^;{}|=<]*\)")
_MORE_AND = re.compile(r"\bif\s*\([^;{}&]*>=[^;{}&]*&&[^;{}&]*>=[^;{}&]*\)\s*(?:\{\s*)?return\b")


def either_bound(source: str) -> bool:
    """Whether a bounds check joins its conditions the wrong way."""
    code = _COMMENT.sub("", source) if "__global__" in source else ""
    return bool(_LESS_OR.search(code) or _MORE_AND.search(code))


def parameters(source: str) -> dict[str, list[str]]:
    """The functions that Python may call and the kernels, each with the names of its parameters."""
    found = {}
    for each in _functions(_COMMENT.sub("", source)):
        if head := re.search(r"(\w+)\s*\(([^()]*)\)\s*$", each.head):
            found[head[1]] = re.findall(r"(\w+)\s*(?:,|$)", head[2].strip())
    return found


def launched_in_another_order(source: str) -> Iterator[str]:
    code = _COMMENT.sub("", source)
    wanted = parameters(source)
    launches: dict[str, list[list[str]]] = {}
    for launch in re.finditer(rf"\b(\w+)\s*(?:<[^<>;]*>)?\s*{_LAUNCH.pattern}", code):
        given = [argument.strip() for argument in launch["arguments"].split(",")]
        launches.setdefault(launch[1], []).append(given)
    for name, every in launches.items():
        yield from another_order(name, every, wanted.get(name, []), "launch")


def another_order(name: str, every: list[list[str]], wanted: list[str], kind: str) -> Iterator[str]:
    """A sentence, if a call's arguments are the parameters in another order, and no other call's are in this one."""
    if wanted in every or len({*wanted}) < len(wanted):  # two buffers may change their parts from call to call
        return
    for given in every:
        if sorted(given) != sorted(wanted):
            continue
        both = [(one, other) for one, other in zip(given, wanted, strict=True) if one != other]
        passed, declared = (", ".join(each) for each in zip(*both, strict=True))
        yield f"The {kind} of `{name}` passes `{passed}`, where its parameters are `{declared}`, in this order."


def _quotient(kernels: list[_Function]) -> str:
    """A quotient of two integers that is 0, such as `1 / 2`, as a term or at the beginning of one."""
    found = (match for kernel in kernels for match in _QUOTIENT.finditer(kernel.body))
    zero = (match["quotient"] for match in found if 0 < int(match["above"]) < int(match["below"]))
    return next((_INTEGERS.format(each) for each in zero), "")


def stray_access(source: str) -> tuple[str, str] | None:
    """Why a kernel uses memory that is not its own and what to do about it, if CUDA C++ `source` tells."""
    code = _COMMENT.sub("", source)
    if name := _host_address(code):
        return _ADDRESS.format(name), _COPIED
    for each in _functions(code):
        if not each.of_the_gpu and (found := _wrong_side(each)):
            return found
    return _LARGEST_INDEX if _SHARED.search(code) else None


def _host_address(code: str) -> str:
    """The name of an array or variable of the host whose address a launch passes to a kernel, or ""."""
    for each in _functions(code):
        arrays = set() if each.of_the_gpu else set(_HOST_ARRAY.findall(each.body))
        for launch in _LAUNCH.finditer(each.body):
            for argument in launch["arguments"].split(","):
                name = argument.strip()
                if name in arrays or re.fullmatch(r"&\s*\w+", name):
                    return name.lstrip("& ")
    return ""


def _wrong_side(host: _Function) -> tuple[str, str] | None:
    """Return why a function of the host is wrong: it passes its own memory to a kernel, or uses the GPU's."""
    launches = list(_LAUNCH.finditer(host.body))
    own = re.findall(r"\bvector\s*<[^;]*>\s+(\w+)|\*\s*(\w+)\s*=[^;]*\b(?:new|malloc)\b", host.body)
    for name in (vector or allocated for vector, allocated in own):
        if any(re.search(rf"\b{name}\b", launch["arguments"]) for launch in launches):
            return _OF_THE_HOST.format(name), _COPIED
    given = re.findall(r"\*\s*(?:__restrict__\s+)?(\w+)\s*[,)]", host.head)
    used = next((name for name in given if re.search(rf"(?<![\w&])\s{name}\s*\[", host.body)), "")
    return (_USED.format(used), _COPIED_BACK) if launches and used else None


def _warp_in_step(code: str) -> bool:
    """Whether it trusts a warp's threads to run in step: with `volatile`, or in an `if` for 32 threads."""
    if "__shared__" not in code or "__syncwarp" in code:
        return False
    volatile = set(_VOLATILE.findall(code))
    bodies = (found["body"] for found in _IN_WARP.finditer(code))
    return any(found[1] in volatile for found in _ADDS_NEIGHBOUR.finditer(code)) or any(
        _ADDS_NEIGHBOUR.search(body) and "__sync" not in body and "_sync(" not in body for body in bodies
    )


def _missing_barrier(code: str, kernels: list[_Function]) -> str:
    for kernel in kernels:
        arrays = re.findall(r"(\w+)\s*\[", " ".join(_SHARED.findall(kernel.body)))
        body = _own_indices(_SHARED.sub("", kernel.body))
        if not _WAITS.search(code) and (name := _exchanged(body, arrays)):
            return _NO_BARRIER.format(name)
        for head, loop in _loops(body):
            waits = _WAITS.findall(loop)
            if not waits and (name := _folded(head, loop, arrays)):
                return _NO_BARRIER.format(name)
            if waits == ["__syncthreads"] and not _TWO_BUFFERS.search(loop) and (name := _exchanged(loop, arrays)):
                return _ONE_BARRIER.format(name)
    return ""


def _own_indices(body: str) -> str:
    """The body with new names for indices of loops that begin at `threadIdx`: another loop's `j` is another index."""
    for head, loop in _loops(body):
        if counter := _OWN_INDEX.search(head):
            body = body.replace(loop, re.sub(rf"\b{counter[1]}\b", f"own_{counter[1]}", loop))
    return body


def _exchanged(body: str, arrays: list[str]) -> str:
    """The first of the arrays that is filled with other values at one index, and read at another index."""
    for name in arrays:
        filled, read = set(), set()
        for use in re.finditer(rf"\b{name}{_SUBSCRIPTS}(\s*=(?!=)[^;]*;)?", body):
            where = re.sub(r"\s", "", use[1])
            if not use[2]:
                read.add(where)
            elif not any(re.search(rf"\b{each}\b", use[2]) for each in arrays):
                filled.add(where)
        if filled and read - filled:
            return name
    return ""


def _folded(head: str, loop: str, arrays: list[str]) -> str:
    """The first of the arrays to which each step of a loop adds what another thread added to it in the last step."""
    counters = re.findall(r"(\w+)\s*(?:[-+*/]|>>|<<)=|(\w+)\s*(?:\+\+|--)|(?:\+\+|--)\s*(\w+)", head)
    steps = {name for each in counters for name in each if name}
    for name in arrays:
        for added in re.finditer(rf"\b{name}{_SUBSCRIPTS}\s*\+=[^;]*\b{name}{_SUBSCRIPTS}", loop):
            words, others = (set(re.findall(r"\w+", each)) for each in added.groups())
            if steps and not steps & words and steps & others:
                return name
    return ""


def _shared_sum(kernels: list[_Function]) -> str:
    """A shared variable to which every thread adds, outside of any braces and of any condition."""
    for kernel in kernels:
        names = re.findall(r"(\w+)\s*[;,=](?!=)", " ".join(_SHARED.findall(kernel.body)))
        flat = re.sub(r"\{[^{}]*\}", ";", re.sub(r"\{[^{}]*\}", ";", kernel.body))
        for name in names:
            if re.search(rf"[;}}]\s*{name}\s*\+=", flat):
                return _ONE_VARIABLE.format(name)
    return ""


def _missing_start(code: str, kernels: list[_Function]) -> str:
    """A local array or struct that is added to and never set."""
    for kernel in kernels:
        for kind, name in re.findall(r"(?<![\w,(])(\w+)\s+(\w+)\s*(?:\[[^\]]*\])*\s*;", _SHARED.sub("", kernel.body)):
            if kind in ("return", "extern", "typename", "struct", "goto"):
                continue
            struct = re.search(rf"\bstruct\s+{kind}\s*\{{(?P<body>[^}}]*)\}}", code)
            alias = re.search(rf"\b{kind}\s*&\s*(\w+)", code) if struct else None
            uses = [(name, kernel.body)] + ([(alias[1], code)] if alias else [])
            adds = any(re.search(rf"\b{each}{_MEMBER}\s*\+=", text) for each, text in uses)
            sets = any(re.search(rf"\b{each}{_MEMBER}?\s*(?:=(?!=)|\{{)", text) for each, text in uses)
            passed = not alias and re.search(rf"[(,]\s*&?\s*{name}\s*[,)]", kernel.body)
            if adds and not sets and not passed and not (struct and "=" in struct["body"]):
                return _NO_VALUE.format(name)
    return ""


def _whole_numbers(kernels: list[_Function]) -> str:
    """An `int` that gets the values of an array of floats, or their sum."""
    for kernel in kernels:
        arrays = re.findall(r"\b(?:float|double)\b\s*(?:const\s*)?\*\s*(?:__restrict__\s*)?(\w+)", kernel.head)
        arrays += re.findall(r"__shared__\s+(?:float|double)\s+(\w+)", kernel.body)
        element = rf"\b(?:{'|'.join(arrays)})\s*\[" if arrays else r"(?!)"
        for name, value in re.findall(r"(?<![\w (])\s*int\s+(\w+)\s*=\s*([^;,]*)[;,]", kernel.body):
            loaded = re.match(element, value) and not re.search(r"[<>?=!]", value)
            summed = value.strip() == "0" and re.search(rf"\b{name}\s*\+=[^;<>?=!]*{element}[^;<>?=!]*;", kernel.body)
            if loaded or summed:
                return _TRUNCATED.format(name)
    return ""


def _missing_atomic(code: str, kernels: list[_Function]) -> str:
    shapes = [launch["shape"].strip() for launch in _LAUNCH.finditer(code)]
    if not shapes or any(shape.startswith(("1,", "dim3(1)")) for shape in shapes):
        return ""  # CuPy launches elsewhere
    for kernel in kernels:
        for name in re.findall(r"\*\s*(?:__restrict__\s+)?(\w+)\s*[,)]", kernel.head):
            if "__global__" in kernel.head and re.search(rf"(?:\*\s*{name}|\b{name}\s*\[\s*0\s*\])\s*\+=", kernel.body):
                return _NO_ATOMIC.format(name)
    return ""


def _assigned_by_the_host(code: str, functions: list[_Function]) -> str:
    for name in _OF_THE_GPU.findall(code):
        if re.search(rf"Symbol\w*\s*\([^;]*\b{name}\b", code):
            continue  # it is copied, so what the host assigns to is a variable of its own
        written = re.compile(rf"(?<![\w.&]){name}\s*(?:\[[^\]]*\]\s*)*(?:=(?!=)|\+=|\+\+)")
        if any(written.search(each.body) for each in functions if not each.of_the_gpu):
            return _ASSIGNED.format(name)
    return ""


def _functions(code: str) -> Iterator[_Function]:
    """The functions, also those within `extern "C" { … }` or a namespace."""
    tokens = tokenize(code)
    for begin, body, end in declarations(tokens, 0, len(tokens)):
        if tokens[body].text == "{":
            yield _Function(joined(tokens[begin:body]), joined(tokens[body + 1 : end - 1]))


def _loops(body: str) -> Iterator[tuple[str, str]]:
    """The heads and the bodies of the first loops, outer ones first. A body without braces is one statement."""
    tokens = tokenize(body)
    loops = (next_token(tokens, at + 1) for at, token in enumerate(tokens) if token.text in ("for", "while"))
    for opens in itertools.islice(loops, _MOST_LOOPS):
        behind = closing(tokens, opens) if opens < len(tokens) and tokens[opens].text == "(" else -1
        start = next_token(tokens, behind + 1)
        if behind > 0 and start < len(tokens):
            braces = tokens[start].text == "{"
            end = closing(tokens, start) if braces else next(declarations(tokens, start, len(tokens)), (0, 0))[1]
            yield joined(tokens[opens + 1 : behind]), joined(tokens[start:end])
