"""Causes in the compiled code: spilled registers, tensor cores not used, double precision, slow sines."""

from __future__ import annotations

from collections.abc import Iterator

from grader.bottleneck.evidence import Code, Evidence
from grader.exercise import Exercise
from grader.verdict import Cause
from grader.words import plural

__all__ = ["capped_registers", "double_precision", "no_pipelining", "no_tensor_cores", "slow_sines", "spills"]

_OVER_FLOAT32 = 15.0  # float16 on tensor cores over float32 without, on an H100
_DOUBLES = 8  # float64 instructions of a kernel: a sum of a thread takes fewer
_TRANSFORM = "fft"  # in its place few sines are needed, and the positions of samples need precision
_CAPS, _FOR_ALL_THREADS = ("max_registers", "maxrregcount"), 32  # 65,536 registers for 2048 threads
_FAST = ("fastmath", "registers", "unsigned", "fatbin", "launch_bounds")  # rungs of the ladder: float32, fast sines


def spills(evidence: Evidence) -> Iterator[Cause]:
    """Registers that do not fit and go to memory."""
    worst = max(_codes(evidence), key=lambda code: code.spilled or 0, default=None)
    if worst is None or not worst.spilled:
        return
    yield Cause(
        "spills",
        f"There are too few registers: {plural(worst.spilled, 'byte')} per thread go to memory and come back.",
        "Give each thread fewer values to hold: use more warps per program, or a smaller block or tile",
        "code",
        _line(evidence, worst),
    )


def capped_registers(source: str, evidence: Evidence) -> Iterator[Cause]:
    """A cap so low that no more threads fit on an SM, which only sends values to memory."""
    ran = evidence.main_kernel
    if ran is not None and 0 < ran.registers < _FOR_ALL_THREADS and any(word in source for word in _CAPS):
        yield Cause(
            "spills",
            f"The cap leaves {plural(ran.registers, 'register')} per thread. With {_FOR_ALL_THREADS}, as many threads "
            "fit on an SM as it can hold, so the cap only sends values to memory.",
            f"Raise the cap to {_FOR_ALL_THREADS} or more",
            "code",
        )


def no_tensor_cores(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A product of float16 matrices without an instruction for tensor cores."""
    half = any(array.dtype in ("float16", "bfloat16") for case in exercise.timed_cases for array in case.inputs)
    codes = _codes(evidence)
    if exercise.limited_by != "arithmetic" or not half or not codes or any(code.tensor_cores for code in codes):
        return
    yield Cause(
        "no tensor cores",
        "The compiled kernel has no tensor-core instructions.",
        "Multiply tiles with `tl.dot` in the type they are stored in: sums of elementwise products do not use tensor "
        'cores, nor do float32 products with `input_precision="ieee"`',
        "code",
        _line(evidence, codes[0]),
        _OVER_FLOAT32,
    )


def no_pipelining(exercise: Exercise, evidence: Evidence) -> Iterator[Cause]:
    """A loop over products whose loads are not begun ahead."""
    codes = [code for code in _codes(evidence) if code.tensor_cores]
    if exercise.limited_by == "arithmetic" and codes and all(code.stages == 1 for code in codes):
        yield Cause(
            "no pipelining",
            "With `num_stages=1`, the loads of each step of the loop wait for the products of the step before.",
            "Use `num_stages=3` or more, so that the next tiles are loaded during the products",
            "code",
            _line(evidence, codes[0]),
        )


def double_precision(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    """Arithmetic in double precision that no array asks for."""
    if not exercise.id.endswith(_FAST) or _TRANSFORM in source:
        return
    worst = max((code for code in _codes(evidence) if not code.double), key=lambda code: code.float64, default=None)
    if worst is not None and worst.float64 >= _DOUBLES:
        yield Cause(
            "double precision",
            f"The kernel has {plural(worst.float64, 'double-precision instruction')}.",
            "Keep constants and loop variables in float32: `0.5` becomes `float32(0.5)`, or `0.5f` in C++",
            "code",
            _line(evidence, worst),
            2.0,
        )


def slow_sines(exercise: Exercise, source: str, evidence: Evidence) -> Iterator[Cause]:
    """Accurate sines in an exercise whose budget allows fast ones."""
    codes = [code for code in _codes(evidence) if not code.double]
    if not exercise.id.startswith("ls_") or not exercise.id.endswith(_FAST) or not codes or _TRANSFORM in source:
        return
    if not any(code.fast_sines for code in codes):
        yield Cause(
            "slow sines",
            "Each sine and cosine takes many instructions; the GPU's own approximation takes one.",
            "Compile with fast math, or call `__sincosf`",
            "code",
            None,
            4.0,
        )


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
