"""Causes in the compiled code: spilled registers, tensor cores not used, double precision, slow sines."""

from __future__ import annotations

from collections.abc import Iterator

from grader.bottleneck.evidence import Code, Evidence
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural

__all__ = ["capped_registers", "double_precision", "no_pipelining", "no_tensor_cores", "slow_sines", "spills"]

_OVER_FLOAT32 = 15.0  # float16 on tensor cores over float32 without, on an H100
_DOUBLE = 0.3  # of a kernel's cycles: what float64 adds
_OVER_MEMORY = 1.5  # times as long as memory takes: adding up in float64 takes less
_TRANSFORM = "fft"  # in its place few sines are needed, and the positions of samples need precision
_CAPS, _FOR_ALL_THREADS = ("max_registers", "maxrregcount"), 32  # 65,536 registers for 2048 threads
_FAST = ("fastmath", "registers", "unsigned", "fatbin", "launch_bounds")  # rungs of the ladder: fast sines
_SINGLE = ("typed", "open", *_FAST)  # float32
_REGISTERS = 255  # of a thread, at most
_ARRAY = 64  # bytes of a thread; the slow path of a sine has an array of up to 40


def spills(evidence: Evidence) -> Iterator[Cause]:
    """Registers that do not fit and go to memory."""
    codes = _codes(evidence)
    worst = max(codes, key=lambda code: code.spilled or 0, default=None)
    launch, values = max(
        ((launch, (each.elements + each.idle) / max(1, each.count * launch.threads))
         for run in evidence.runs for launch in run.launches for each in launch.accesses if each.kind == "store"),
        key=lambda one: one[1], default=(None, 0.0),
    )  # fmt: skip
    if worst is not None and worst.spilled:
        seen, line = f"{plural(worst.spilled, 'byte')} per thread do not fit", _line(evidence, worst)
    elif launch is not None and values > _REGISTERS and all(code.spilled is None for code in codes):
        seen, line = (
            f"a thread has to hold {plural(round(values), 'value')}, but has at most {_REGISTERS} registers",
            launch.line,
        )
    else:
        yield from _indexed(evidence)
        return
    seen = f"Registers spill: {seen}. The surplus goes to memory and back."
    cure = "Give each thread fewer values to hold: use smaller tiles, or more threads per block (`num_warps` in Triton)"
    yield Cause("spills", seen, cure, "code", line)


def _indexed(evidence: Evidence) -> Iterator[Cause]:
    """An array of a thread that cannot be in registers, which have no index at run time."""
    worst = max(_codes(evidence), key=lambda code: code.indexed, default=None)
    if worst is not None and worst.indexed >= _ARRAY:
        seen = (
            f"Each thread has {plural(worst.indexed, 'byte')} of local arrays in memory instead of registers, because "
            "an index is known only at run time."
        )
        cure = (
            "Let the compiler know each index: unroll the loops over the array (`#pragma unroll`), with bounds that "
            "are constants and the same for all threads"
        )
        yield Cause("spills", seen, cure, "code", _line(evidence, worst))


def capped_registers(source: str, evidence: Evidence) -> Iterator[Cause]:
    """A cap so low that no more threads fit on an SM, which only sends values to memory."""
    ran = evidence.main_kernel
    if ran is not None and 0 < ran.registers < _FOR_ALL_THREADS and any(word in source for word in _CAPS):
        seen = (
            f"The cap leaves {plural(ran.registers, 'register')} per thread. With {_FOR_ALL_THREADS}, an SM already "
            "holds as many threads as it can, so a lower cap only sends values to memory."
        )
        cure = f"Raise the cap to {_FOR_ALL_THREADS} or more"
        yield Cause("spills", seen, cure, "code")


def no_tensor_cores(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A product of float16 matrices without an instruction for tensor cores."""
    half = any(array.dtype in ("float16", "bfloat16") for case in exercise.timed_cases for array in case.inputs)
    codes = _codes(evidence)
    if exercise.limited_by != "arithmetic" or not half or not codes or any(code.tensor_cores for code in codes):
        return
    seen = "The compiled kernel has no tensor-core instructions."
    cure = (
        "Multiply tiles with `tl.dot` in the type they are stored in: sums of elementwise products do not use tensor "
        'cores, nor do float32 products with `input_precision="ieee"`'
    )
    yield Cause("no tensor cores", seen, cure, "code", _line(evidence, codes[0]), _OVER_FLOAT32)


def no_pipelining(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A loop over products whose loads are not begun ahead."""
    codes = [code for code in _codes(evidence) if code.tensor_cores]
    if exercise.limited_by == "arithmetic" and codes and all(code.stages == 1 for code in codes):
        seen = "With `num_stages=1`, the loads of each step of the loop wait for the products of the step before."
        cure = "Use `num_stages=3` or more, so that the next tiles are loaded during the products"
        yield Cause("no pipelining", seen, cure, "code", _line(evidence, codes[0]))


def double_precision(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    """Arithmetic in double precision that no array asks for, and that takes longer than memory does."""
    single = exercise.id.endswith(_SINGLE)
    if _TRANSFORM in source or (exercise.id.startswith("ls_") and not single):
        return
    codes = (code for code in _codes(evidence) if not code.double)
    worst = max(codes, key=lambda code: code.double_cycles, default=None)
    if worst is None or worst.double_cycles < max(1.0, _DOUBLE * worst.cycles):
        return
    by_memory = exercise.limited_by == "memory"
    at_most = (worst.cycles + worst.double_cycles) / max(1, worst.access_cycles if by_memory else worst.cycles)
    if at_most >= _OVER_MEMORY or not by_memory:
        seen = f"The kernel has {plural(worst.float64, 'double-precision instruction')}."
        cure = "Compute in float32, constants included: write `0.5` as `float32(0.5)` in Numba, and as `0.5f` in C++"
        yield Cause("double precision", seen, cure, "code", _line(evidence, worst), at_most)


def slow_sines(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    """Accurate sines in an exercise whose budget allows fast ones."""
    codes = [code for code in _codes(evidence) if not code.double]
    allowed = exercise.id.startswith("ls_") and exercise.id.endswith((*_FAST, "open")) and _TRANSFORM not in source
    if allowed and codes and not any(code.fast_sines for code in codes):
        seen = "Each sine and cosine takes many instructions; the GPU's own approximation takes one."
        cure = "Compile with fast math (`fastmath=True` in Numba, `--use_fast_math` in CuPy), or call `__sincosf`"
        yield Cause("slow sines", seen, cure, "code", None, 4.0)


def _codes(evidence: Evidence) -> list[Code]:
    of_launches = [launch.code for run in evidence.runs for launch in run.launches if launch.code is not None]
    return [*evidence.codes, *of_launches]


def _line(evidence: Evidence, code: Code) -> int | None:
    if code.line:
        return code.line
    launches = [launch for run in evidence.runs for launch in run.launches]
    return next(
        (launch.line for launch in launches if launch.kernel == code.kernel), launches[-1].line if launches else None
    )
