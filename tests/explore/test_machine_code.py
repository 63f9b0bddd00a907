"""Machine code of Numba and CUDA C++ is read without a GPU."""

from __future__ import annotations

import math

import pytest

from grader.explore.ladder.machine_code import (
    MachineCode,
    built_code,
    compiled_ladder,
    cuda_code,
    draw_loops,
    ladder_loop,
    loop_of,
    loop_parts,
    numba_code,
    nvrtc_view,
)

_LISTING = [
    (0x00, "MOV R1, c[0x0][0x28]"),
    (0x10, "LDG.E R2, [R4.64]"),
    (0x20, "MUFU.SIN R3, R2"),
    (0x30, "@P0 BRA 0x10"),
    (0x40, "@!P1 BRA 0x0"),
    (0x50, "BRA 0xa0"),
    (0x60, "MUFU.SIN R9, R2"),
    (0x70, "MUFU.SIN R9, R2"),
    (0x80, "@P2 STG.E [R6.64], R9"),
    (0x90, "@P0 BRA 0x60"),
    (0xA0, "BRA 0xa0"),
]


def test_the_loop_is_the_innermost_one_that_takes_sines():
    """The outer loop, its copy with a store, forward jumps and the endless jump at every kernel's end do not count."""
    assert loop_of(_LISTING) == ("LDG.E R2, [R4.64]", "MUFU.SIN R3, R2", "@P0 BRA 0x10")
    assert loop_of(_LISTING[:3]) == ()


def test_instructions_are_counted_whatever_their_predicate():
    """Instructions are counted by their beginning; conversions to and from float64 count as float64."""
    lines = ("@P0 MUFU.SIN R1, R2", "MUFU.SINK R1", "DADD R2, R4, R6", "@!P1 F2F.F64.F32 R2, R1", "FADD R1, R1, R1")
    code = MachineCode("some", 8, 0, lines, lines[:1])
    assert (code.count("MUFU.SIN "), code.float64, code.per_sample) == (1, 2, 1.0)


@pytest.mark.timeout(120)
def test_a_float64_literal_shows_and_a_typed_kernel_has_few():
    """The baseline works mostly in float64 although its arrays are float32, and it needs more registers."""
    baseline, typed = compiled_ladder("baseline", "typed").codes
    assert baseline.float64 > 100 > 20 > typed.float64
    assert baseline.registers > typed.registers + 10
    assert "not a fixed number" in repr(compiled_ladder("baseline"))


@pytest.mark.timeout(120)
def test_fast_math_takes_sines_in_one_instruction_and_a_low_cap_spills():
    """Fast math needs no float64, a limit of 16 registers spills, and a limit of 32 changes nothing."""
    (fast,) = compiled_ladder("fastmath").codes
    (low,) = compiled_ladder("fastmath", max_registers=16).codes
    (cap,) = compiled_ladder("fastmath", max_registers=32).codes
    assert fast.count("MUFU.SIN") >= 4
    assert fast.float64 == fast.spilled_bytes == 0
    assert low.spilled_bytes > 0
    assert (cap.registers, cap.spilled_bytes, len(cap.instructions)) == (fast.registers, 0, len(fast.instructions))


@pytest.mark.timeout(120)
def test_an_unsigned_index_brings_numbas_loop_near_to_that_of_cuda():
    """Only the indices differ: the rest of the loop is alike."""
    parts = {rung: loop_parts(ladder_loop(rung)) for rung in ("fastmath", "unsigned", "cuda fast")}
    sums = {rung: sum(counts.values()) for rung, counts in parts.items()}
    assert sums["fastmath"] > 2 * sums["unsigned"]
    assert sums["unsigned"] < 1.25 * sums["cuda fast"]
    for counts in parts.values():
        assert (counts["sine and cosine"], counts["loads"]) == (2, 2)
    picture = draw_loops("fastmath", "unsigned")
    assert f"{sums['fastmath']:g}" in picture.alt
    with pytest.raises(ValueError, match="fast math"):
        draw_loops("typed")


def test_a_kernel_of_ones_own_compiles_and_an_error_is_the_compilers():
    """A function and a `cuda.jit` kernel both compile; CUDA C++ that does not compile says why."""
    from numba import cuda

    @cuda.jit
    def twice(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] + x[i]

    code = numba_code(twice, "float64", arrays=2)
    assert (code.title, code.loop, code.count("DADD")) == ("twice", (), 1)
    assert ".visible .entry" in code.ptx
    with pytest.raises(RuntimeError, match="nothing_of_the_kind"):
        cuda_code('extern "C" __global__ void k(float* x) { x[0] = nothing_of_the_kind; }', "k")


def _doubling(**options):
    """Return a `build` like that of an exercise: it compiles the kernel for its signature immediately."""
    from numba import cuda, void

    def build(real):
        @cuda.jit(void(real[::1], real[::1]), **options)
        def twice(x, out):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                out[i] = real(2.0) * math.sin(x[i])

        return twice

    return build


def test_a_kernel_that_a_function_builds_is_compiled_with_its_options():
    """No GPU is needed, even with a signature; the options are used, and `cuda.jit` is restored."""
    from numba import cuda

    jit = cuda.jit
    plain, fast = built_code(_doubling(), arrays=2), built_code(_doubling(fastmath=True), arrays=2)
    assert (plain.count("MUFU.SIN"), fast.count("MUFU.SIN") > 0) == (0, True)
    assert built_code(_doubling(max_registers=24), arrays=2).registers <= 24 < plain.registers
    assert cuda.jit is jit


def test_a_build_that_returns_no_kernel_is_told_so():
    """A function without `return` returns None."""
    with pytest.raises(TypeError, match="build returned None: return the kernel"):
        built_code(_returns(None))
    with pytest.raises(TypeError, match="returned no kernel"):
        built_code(_returns(1))


def _returns(value):
    def build(real):
        return value

    return build


def test_the_ladder_shows_a_kernel_of_ones_own_below_its_rungs(capsys):
    """A kernel that is not written yet is left out with a message."""

    def stub(real):
        raise NotImplementedError("not written yet")

    def build(real):
        from numba import cuda, void

        @cuda.jit(void(*[real[::1]] * 4))
        def power(t, y, freqs, out):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = 2 * freqs[i] + t[i] * y[i]

        return power

    assert [code.title for code in compiled_ladder("typed", yours=stub).codes] == ["Numba, explicit types"]
    assert capsys.readouterr().out == "Yours is left out: not written yet.\n"
    (mine,) = compiled_ladder(yours=build).codes
    assert mine.title == "yours"
    assert mine.float64 > 0  # an int64 times a float32


_SCALED = 'extern "C" __global__ void f(const float* x, float* out) {{ out[0] = {0} * x[0]; }}'
_SINE = 'extern "C" __global__ void f(const float* x, float* out) { out[0] = sinf(x[0]); }'


@pytest.mark.parametrize(("literal", "doubles"), [("0.1", 3), ("0.1f", 0), ("2.0", 0)])
def test_a_double_literal_is_seen_in_the_machine_code(literal: str, doubles: int) -> None:
    """It costs a conversion, a multiplication and a conversion back; a factor of 2 is exact either way."""
    assert nvrtc_view(_SCALED.format(literal)).count("double") == doubles


def test_fast_math_makes_a_sine_one_instruction() -> None:
    """The accurate sine does not use the special-function unit."""
    assert nvrtc_view(_SINE).count("MUFU.SIN") == 0
    fast = nvrtc_view(_SINE, "--use_fast_math")
    assert fast.count("MUFU.SIN") == 1
    assert len(fast.instructions) < 20


def test_registers_are_told_for_each_kernel_and_architecture() -> None:
    """Each kernel has its own number of registers, for the chosen architecture."""
    view = nvrtc_view(_SINE + _SCALED.format("2.0f").replace("f(", "g("), capability=80)
    assert set(view.registers) == {"f", "g"}
    assert all(8 <= count <= 255 for count in view.registers.values())
    assert "sm_80" in repr(view)
    assert "SASS" in view._repr_html_()


def test_what_does_not_compile_is_told_in_nvrtcs_words() -> None:
    """The message has the line of the source."""
    with pytest.raises(RuntimeError, match=r'kern\.cu\(2\): error: identifier "b" is undefined'):
        nvrtc_view('extern "C" __global__ void f() {\n int a = b; }')
