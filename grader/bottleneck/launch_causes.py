"""Causes in how kernels are launched: how often, how many programs and threads, and what the host does in between."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from itertools import islice

from grader.bottleneck.evidence import WARP, Evidence, Launch, Run
from grader.bottleneck.host_causes import BUILD_EACH_TIME
from grader.exercise import Exercise
from grader.submission.solution_cell import parsed
from grader.verdict import Cause
from grader.words import plural, time

__all__ = [
    "few_programs", "gain_of_fewer", "host_time", "low_occupancy", "many_launches", "small_blocks",
    "small_programs", "source_causes",
]  # fmt: skip

_OF_AN_H100 = 132  # SMs, where the GPU is not known
_LAUNCHES = 8  # per call
_LONG_US = 10.0  # of a kernel, compared with a few microseconds for a launch
_BLOCKS_PER_SM, _THREADS_PER_SM = 32, 2048
_REGISTERS_PER_SM, _SHARED_PER_SM = 65_536, 233_472  # of an H100; a block takes 1 KB of the shared memory itself
_IDLE_GPU = 1.5  # a call that takes this many times as long as its kernels waits for the host
_FEW_REGISTERS = 64  # of a thread without many sums
_LOW = 0.2  # of the threads that fit on an SM
_SMALL_PROGRAM, _PER_THREAD = 64, 4  # elements
_LARGER_PROGRAMS = "Let each program load a block of 1,024 elements or more with `tl.arange`, in 4 warps or more"
_MUCH_LARGER = 4  # of two cases: a grid that does not grow with the problem is the same for both
_ONE_BLOCK = re.compile(r"(?:<<<|[\[({])\s*1\s*,")
_COUNTS_SMS = "multiprocessor"  # in a cell, without underscores


def many_launches(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A loop on the host that launches a kernel, or calls an operation of torch, in each iteration."""
    run = evidence.largest
    if run is None:
        return
    launches = [(each.line, each.count, "launches a kernel", run.case.name) for each in run.launches]
    launches += [(each.line, each.count, "launches a kernel", each.case) for each in evidence.codes if each.case]
    launches += [(None, each.count, "launches a kernel", run.case.name) for each in evidence.kernels if each.programs]
    calls = [(each.line, each.count, f"calls torch's `{each.name}`", run.case.name) for each in run.operations]
    if evidence.planned is not None:
        every = evidence.planned.launches
        lines = {each.line for each in every}
        launches += [(line, sum(each.count for each in every if each.line == line), "launches a kernel",
                      evidence.planned.case.name) for line in lines]  # fmt: skip
    line, count, what, case = max(launches + calls, key=lambda call: call[1], default=(None, 0, "", ""))
    if count < _LAUNCHES:
        return
    own = what.startswith("launches") and exercise.backend != "torch"  # there, torch's operations have the kernels
    once = "launch: make the loop's index a dimension of the grid" if own else "operation on a whole tensor"
    seen = f"One call {what} {plural(count, 'time')} in the case “{case}”, at a few microseconds each."
    cure = f"Do all of it in one {once}"
    yield Cause("many launches", seen, cure, "calls", line)


def gain_of_fewer(evidence: Evidence) -> float | None:
    """The most that fewer launches bring: the call's time over that of kernels that run long and reach every SM.

    None if no kernel does, or the times are not known.
    """
    run = evidence.largest
    full = [each for each in evidence.kernels if each.programs >= evidence.multiprocessors > 0]
    us = sum(each.us for each in full if each.us >= _LONG_US * each.count)
    return run.us / us if run is not None and run.us and us else None


def _main(run: Run) -> Launch | None:
    """The launch that does most of the work: by bytes, or else by threads."""
    return max(run.launches, key=lambda one: (sum(a.bytes for a in one.accesses), one.programs * one.threads),
               default=None)  # fmt: skip


def small_programs(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Triton programs with fewer elements than threads, or of one warp with so few that an SM cannot hold enough."""
    run = evidence.largest
    main = _main(run) if run is not None else None
    if main is None or not main.accesses or main.programs < WARP // 2:
        return
    block = max(each.block for each in main.accesses)
    idle = 0 < block <= _SMALL_PROGRAM and 2 * block <= main.threads
    few = exercise.limited_by == "memory" and main.threads == WARP and 0 < block <= _PER_THREAD * WARP
    if not idle and not few:
        return
    seen = (
        f"There are {plural(main.programs, 'program')}, each with {plural(round(block), 'element')} for its "
        f"{plural(main.threads, 'thread')}{'' if idle else f'. An SM holds at most {_BLOCKS_PER_SM} programs'}."
    )
    ratio = main.threads / block if idle else _unfilled(1)
    yield Cause("small programs", seen, _LARGER_PROGRAMS, "accesses", main.line, ratio)


def small_blocks(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """Blocks of threads with too few warps to fill an SM, or with a warp that is not full.

    Triton's are called small programs. They are not the cause if their registers or shared memory are the limit.
    """
    run = evidence.largest
    main = _main(run) if run is not None else None
    if main is None or main.accesses or not main.threads or main.programs < 2:
        return
    if evidence.simulated and _threads_when_timed(evidence, main) != main.threads:
        return  # chosen by the size of the case
    warps, code = -(-main.threads // WARP), main.code
    if main.threads % WARP:
        seen = (
            f"A block has {plural(main.threads, 'thread')}, but runs in warps of {WARP}: "
            f"{plural(warps * WARP - main.threads, 'lane')} of the last one never work."
        )
        cure = f"Make the number of threads per block a multiple of {WARP}, such as 128 or 256"
        yield Cause("partial warps", seen, cure, "calls", main.line, max(warps * WARP / main.threads, _unfilled(warps)))
    elif code is not None and _limit(main.threads, code.registers or 0, code.shared or 0)[1] != "threads":
        return
    elif _unfilled(warps) > 1:
        triton = exercise.backend == "triton"
        name = "program" if triton else "block"
        seen = (
            f"A {name} has {plural(main.threads, 'thread')}. An SM holds at most {_BLOCKS_PER_SM} {name}s, so only "
            f"{_BLOCKS_PER_SM * main.threads:,} of the {_THREADS_PER_SM:,} threads that fit on it are in flight."
        )
        cure = _LARGER_PROGRAMS if triton else "Launch blocks of 128 or 256 threads"
        yield Cause(f"small {name}s", seen, cure, "calls", main.line, _unfilled(warps))


def _threads_when_timed(evidence: Evidence, main: Launch) -> int:
    """The threads per block of a launch in a timed case; 0 if that is not known and they depend on the case."""
    planned = evidence.planned.launches if evidence.planned is not None else ()
    in_plan = {each.threads for each in planned if each.line == main.line}
    seen = in_plan or {each.threads for run in evidence.runs for each in run.launches if each.line == main.line}
    return main.threads if main.threads in in_plan else seen.pop() if len(seen) == 1 else 0


def _unfilled(warps: int) -> float:
    return max(1.0, _THREADS_PER_SM / (_BLOCKS_PER_SM * WARP * warps))


def few_programs(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    """A grid that does not reach every SM, whatever the size of the problem."""
    multiprocessors, case = evidence.multiprocessors or _OF_AN_H100, ""
    if evidence.simulated and exercise.backend != "cuda" and _COUNTS_SMS in source.lower().replace("_", ""):
        return  # the simulated device has few
    runs = [(run, _main(run)) for run in evidence.runs]
    found = [(run, main) for run, main in runs if main is not None]
    same = len({main.programs for _, main in found}) == 1
    codes = [code for code in evidence.codes if code.programs]
    ran = evidence.main_kernel
    if ran is not None and ran.programs:
        programs = ran.programs
    elif codes:
        programs, case = max((code.programs or 0, code.case) for code in codes)
    elif found and same and _MUCH_LARGER * found[0][0].elements <= found[-1][0].elements:
        programs = found[0][1].programs
        row = (found[-1][1].line or 1) - 1
        if programs == 1 and not _ONE_BLOCK.search("".join(source.split("\n")[row : row + 1])):
            return  # one block can be enough for both
    elif found and not evidence.simulated:
        programs = found[-1][1].programs
    else:
        return
    if programs < multiprocessors and (found or ran):
        seen = (
            f"The launch has {plural(programs, 'block')}{f' in the case “{case}”' if case else ''} for the "
            f"{multiprocessors} SMs of {'this GPU' if evidence.multiprocessors else 'an H100'}: the rest are idle."
        )
        cure, at = "Divide the work among more blocks, several per SM", found[-1][1].line if found else None
        yield Cause("few programs", seen, cure, "calls", at, multiprocessors / programs)


def host_time(evidence: Evidence) -> Iterator[Cause]:
    """A call that takes much longer than its kernels, although it is queued ahead of the GPU."""
    run, busy = evidence.largest, evidence.kernels_us
    if run is not None and run.us and busy and run.us >= _IDLE_GPU * busy:
        seen = (
            f"The kernels of a call take {time(busy)} of its {time(run.us)}. For the rest, the GPU waits for the host."
        )
        cure = "Move work on the host out of the call, such as making tensors and choosing constants"
        yield Cause("host time", seen, cure, "times", None, run.us / busy)


def low_occupancy(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A kernel that waits, with few threads on an SM because of its registers or its shared memory.

    If arithmetic is the limit, many registers hold independent sums, and few threads with them are enough.
    """
    ran = evidence.main_kernel
    if ran is not None and ran.occupancy and ran.programs >= evidence.multiprocessors:
        share, limit = ran.occupancy / 100, _limit(ran.threads, ran.registers, ran.shared)[1]
        if _waits_for_threads(exercise, limit, ran.registers):
            yield from _few_threads(share, limit, ran.registers, ran.shared, None)
        return
    launch = _main(evidence.runs[-1]) if evidence.runs else None
    if launch is None or not launch.threads:
        return
    named = [code for code in evidence.codes if code.kernel == launch.kernel or len(evidence.codes) == 1]
    code = launch.code or (named[0] if named else None)
    if code is None or not code.registers:
        return
    shared = max(code.shared or 0, launch.shared)
    share, limit = _limit(launch.threads, code.registers, shared)
    if _waits_for_threads(exercise, limit, code.registers) and not (code.async_copies and limit == "shared memory"):
        yield from _few_threads(share, limit, code.registers, shared, launch.line)


def _waits_for_threads(exercise: Exercise, limit: str, registers: int) -> bool:
    if exercise.limited_by == "memory":
        return True
    half = any(array.dtype in ("float16", "bfloat16") for case in exercise.timed_cases for array in case.inputs)
    return not half and limit == "shared memory" and registers <= _FEW_REGISTERS


def _limit(threads: int, registers: int, shared: int) -> tuple[float, str]:
    """The share of an SM's threads that can be in flight, and what limits it."""
    fits = {
        "threads": min(_BLOCKS_PER_SM, _THREADS_PER_SM // max(1, threads)),
        "registers": _REGISTERS_PER_SM // max(1, registers * threads),
        "shared memory": _SHARED_PER_SM // (shared + 1024),
    }
    limit = min(fits, key=lambda name: fits[name])
    return max(1, fits[limit]) * threads / _THREADS_PER_SM, limit


def _few_threads(share: float, limit: str, registers: int, shared: int, line: int | None) -> Iterator[Cause]:
    if share >= _LOW or limit == "threads":
        return
    if limit == "registers":
        takes, cure = f"thread takes {plural(registers, 'register')}", "Give each thread fewer values to hold"
    else:
        takes, cure = f"block takes {plural(shared, 'byte')} of it", "Use smaller tiles, or ask for less of it"
    seen = f"Only {share:.0%} of the threads that an SM can hold fit on it, because of the {limit}: a {takes}."
    yield Cause("low occupancy", seen, cure, "code", line, 1 / share / 2)


_WAITS = {"item", "cpu", "tolist", "numpy", "asnumpy", "copy_to_host", "synchronize"}
_VALUES = {"all", "any", "max", "mean", "min", "sum"}  # which an `if` or `float()` asks the GPU for
_NUMBERS = {"bool", "float", "int"}
_ON_THE_HOST = {"math", "np", "numpy"}
_BUILDS = {"autotune", "compile", "jit", "load_inline", "RawKernel", "RawModule"}
_CACHES = {"cache", "lru_cache"}
_PLACES = 8  # of a kind that are searched for loops: the text is untrusted
_STATEMENT, _USUAL_BLOCK = 2000, 256  # characters at most; threads
_TO_THE_HOST = ("asnumpy", "copy_to_host", "get")  # of arrays of CuPy and Numba
_SYNCHRONIZES = re.compile(r"\b(cuda(?:Device|Stream)Synchronize)\(")
_EVERY_OTHER = re.compile(r"%\s*\(?\s*2\s*\*\s*\w+\s*\)?\s*==\s*0")
_ONE_THREAD = re.compile(r"\b(\w+)<<<\s*1\s*,\s*1\s*[,>]")
_LOOP = re.compile(r"\b(?:for|while)\s*\(")
_THREAD_0 = re.compile(r"\bif\s*\(\s*(?:threadIdx\.x\s*==\s*0|!\s*threadIdx\.x)\s*\)\s*")
_UP_TO = re.compile(r"\bfor\s*\([^;{}]{0,99};[^;{}]{0,99}<=?\s*([\w.]{1,60})\s*;", re.ASCII)
_CONSTANT = r"(?m)(?:#define|\bconst(?:expr)?\s+int)\s+%s\s*(?:=\s*)?\b([0-9]{1,9})[ \t]*(?:;|$)"


def source_causes(exercise: Exercise, source: str) -> Iterator[Cause]:
    """Causes in the text of the cell, such as a wait for the GPU or a kernel that each call builds again."""
    if exercise.backend == "cuda":
        yield from _in_cuda(re.sub("//.*", "", source))
    try:
        yield from list(_in_text(exercise, parsed(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # an untrusted text; a long chain is a deep tree
        return


def _in_cuda(text: str) -> Iterator[Cause]:
    def line(at: int) -> int:
        return text.count("\n", 0, at) + 1

    for found in _SYNCHRONIZES.finditer(text):
        yield _wait(found[1], line(found.start()))
    for found in _EVERY_OTHER.finditer(text):
        seen = "Fewer and fewer threads of each warp take this branch, but the warp takes as long as if all did."
        cure = "Keep neighbouring threads working: start with half of them, `threadIdx.x < step`, and halve `step`"
        yield Cause("divergence", seen, cure, "source", line(found.start()))
    for name in list(dict.fromkeys(_ONE_THREAD.findall(text)))[:_PLACES]:
        kernel = re.search(rf"\bvoid\s+{name}\(.*?(?=\b__global__|\bextern)", text, re.DOTALL)
        if kernel is not None and (loop := _LOOP.search(text, kernel.start(), kernel.end())):
            seen = f"`{name}` runs this loop in a single thread, and the rest of the GPU is idle."
            cure = "Divide the loop among the threads of a block, or add up fewer values"
            yield Cause("serial tail", seen, cure, "source", line(loop.start()))
    alone = []
    for found in islice(_THREAD_0.finditer(text), _PLACES):
        loop = _UP_TO.search(text, found.end(), _end_of_statement(text, found.end()))
        if loop is not None and (turns := _turns(text, found.start(), loop[1])) > WARP:
            alone.append((turns, loop.start()))
    if alone:
        seen = "Thread 0 runs this loop alone, while the other threads of its block wait or have finished."
        cure = "Divide the loop among the threads of the block, or add up fewer values"
        yield Cause("serial tail", seen, cure, "source", line(max(alone)[1]))


def _end_of_statement(text: str, at: int) -> int:
    """The end of the C++ statement that begins at `at`: of a block, or of a loop, or at a semicolon."""
    depth, most = 0, min(len(text), at + _STATEMENT)
    for end in range(at, most):
        depth += (text[end] in "({") - (text[end] in ")}")
        if depth <= 0 and text[end] in ";}":
            return end
    return most


def _turns(text: str, at: int, bound: str) -> float:
    """How many turns a loop up to `bound` takes; infinity for the number of blocks or of elements, 0 if unknown."""
    constant = re.search(_CONSTANT % re.escape(bound), text)
    number = constant[1] if constant else bound
    if number.isdigit():
        return int(number)
    kernel = text.rfind("__global__", 0, at)
    parameters = text[kernel : text.find("{", kernel)]
    if bound == "gridDim.x" or re.search(rf"\bint\s+{re.escape(bound)}\b", parameters):
        return math.inf
    return _USUAL_BLOCK if bound == "blockDim.x" else 0


def _in_text(exercise: Exercise, tree: ast.Module) -> Iterator[Cause]:
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    for function in _reached(functions, exercise.entry):
        if any(_name(each) in _CACHES for each in function.decorator_list):
            continue
        guarded = _guarded(function)
        for node in (each for statement in function.body for each in ast.walk(statement)):
            makers = [node] if isinstance(node, ast.Call) else getattr(node, "decorator_list", [])
            if _BUILDS & set(map(_name, makers)) and id(node) not in guarded and exercise.id not in BUILD_EACH_TIME:
                seen = f"Each call of `{exercise.entry}` creates the kernel again, and compiles it or looks it up."
                cure = "Create it once, at the top of the cell or in a function with `@functools.cache`"
                yield Cause("built in each call", seen, cure, "source", makers[0].lineno)
            for asked in _asked(node):
                yield _wait(" ".join(ast.unparse(asked.func).split())[-40:], asked.lineno)


def _wait(called: str, line: int) -> Cause:
    cure = "Leave the values on the GPU and compute with them there: `torch.where` can replace an `if`"
    if called.lower().endswith("synchronize"):
        cure = "Remove it: the GPU runs its work in order anyway"
    elif called.endswith(_TO_THE_HOST):
        cure = "Leave the values on the GPU and pass device arrays to the kernel: each copy to the host takes time"
    return Cause("waits for the GPU", f"`{called}()` makes the host wait for the GPU.", cure, "source", line)


def _asked(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in it that wait for a value: `x.item()`, and `x.any()` as a condition or in `float()`."""
    inside: list[ast.expr] = []
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        inside = [node.test]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _name(node) in _NUMBERS:
        inside = node.args
    for each in (each for one in inside for each in ast.walk(one)):
        if isinstance(each, ast.Call) and _method(each) in _VALUES:
            yield each
    if isinstance(node, ast.Call) and (_method(node) in _WAITS or (_method(node) == "get" and not node.args)):
        yield node  # CuPy's `get`: that of a dict takes a key


def _method(call: ast.Call) -> str:
    """The name of a method, or of a function of a module that is not one for the host."""
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    return _name(call) if of is not None and _name(of) not in _ON_THE_HOST else ""


def _guarded(function: ast.FunctionDef) -> set[int]:
    """The nodes that a condition may skip, by identity: an object that is made there is made once.

    They are in an `if` or an `except`, or follow an `if` that returns a value. Each is visited once.
    """
    found: set[int] = set()
    left: list[tuple[ast.AST, bool]] = [(function, False)]
    while left:
        node, inside = left.pop()
        inside = inside or isinstance(node, ast.If | ast.ExceptHandler)
        if inside:
            found.add(id(node))
        for each in ast.iter_child_nodes(node):
            left.append((each, inside))
            last = each.body[-1] if isinstance(each, ast.If) else None
            inside = inside or (isinstance(last, ast.Return) and last.value is not None)
    return found


def _reached(functions: dict[str, ast.FunctionDef], entry: str) -> list[ast.FunctionDef]:
    """The functions that each call of the entry point runs on the host. Kernels are launched by `kernel[grid](…)`."""
    found: dict[str, ast.FunctionDef] = {}
    left = [entry]
    while left:
        name = left.pop()
        if name in functions and name not in found:
            found[name] = functions[name]
            guarded = _guarded(functions[name])
            calls = [each for each in ast.walk(functions[name]) if isinstance(each, ast.Call)]
            left += [each.func.id for each in calls if isinstance(each.func, ast.Name) and id(each) not in guarded]
    return list(found.values())


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
