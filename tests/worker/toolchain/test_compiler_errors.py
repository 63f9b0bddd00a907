"""The compilers' errors, and their lines in the learner's cell."""

# ruff: noqa: E501

from __future__ import annotations

import pytest

from grader.worker.toolchain.compiler_errors import first_error, line_mark

CELL = 'import x\nsource = r"""\n__global__ void k() {}\n"""\n'


def test_a_mark_points_into_the_cell() -> None:
    """Lines count from the top of the cell if the string is unchanged there, otherwise from its own start."""
    assert line_mark("\n__global__ void k() {}\n", "cuda_source", CELL) == '#line 2 "cell"\n'
    assert line_mark("made of parts", "cuda_source", CELL) == '#line 1 "cuda_source"\n'
    assert line_mark("a\nb", "cuda_source", 's = "a\\nb"') == '#line 1 "cuda_source"\n'
    assert line_mark("a", "cuda_source", "not python (") == '#line 1 "cuda_source"\n'


def test_a_changed_literal_is_found_by_its_other_lines() -> None:
    """A filled template begins where the template does; a string with a line put before it, one line earlier."""
    lines = [f"    int a{number} = {number};" for number in range(6)]
    cell = 'import x\nsource = Template(\n    r"""$T y;\n' + "\n".join(lines) + '\n""")\n'
    assert line_mark("\n".join(["float y;", *lines, ""]), "cuda_source", cell) == '#line 3 "cell"\n'
    assert line_mark("\n".join(["int z;", "float y;", *lines]), "cuda_source", cell) == '#line 2 "cell"\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "[1/2] c++ -c main.cpp\ncell: In function ‘void f()’:\ncell:7:5: error: expected ‘,’ or ‘;’ before ‘out’\ncell:9:1: error: x",
            7,
            "expected ',' or ';' before 'out'",
        ),
        (
            'cell(7): error: identifier "y" is undefined\n  out[i] = y;\n1 error detected in the compilation of "/tmp/cuda.cu".',
            7,
            'identifier "y" is undefined',
        ),
        ("/tmp/x/cell(12): error #20: identifier is undefined", 12, "identifier is undefined"),
        ("cell:3:10: fatal error: cub/cub.cuh: No such file or directory", 3, "cub/cub.cuh: No such file or directory"),
        (
            "cell(4): warning #177-D: variable was declared\ncell(9): error: expected a declaration",
            9,
            "expected a declaration",
        ),
        ("cuda.cu(5): error: expected a declaration", None, "In the CUDA source, line 5: expected a declaration"),
        ("/tmp/a/main.cpp:2:1: error: 'x' was not declared", None, "In the C++ source, line 2: 'x' was not declared"),
        (
            "In file included from /i/cuda_on_cpu.h:1,\n/i/a.h: In instantiation of ‘f’:\ncell:14:30:   required from here\n/i/a.h:20:5: error: static assertion failed: too wide",
            14,
            "static assertion failed: too wide",
        ),
        (
            "ptxas error   : Entry function '_Z1kv' uses too much shared data (0x10000 bytes, 0xc000 max)",
            3,
            "Entry function '_Z1kv' uses too much shared data (0x10000 bytes, 0xc000 max)",
        ),
        (
            "/usr/bin/ld: main.o: in function `f':\nmain.cpp:(.text+0x5): undefined reference to `g(int)'\ncollect2: error: ld returned 1 exit status",
            None,
            "undefined reference to `g(int)'",
        ),
        (
            "__nv_nvrtc_builtin_header.h(3379): error: expected an identifier\n  template<typename T>\n",
            None,
            "expected an identifier, in CUDA's own header: a macro of the options, such as `-DT=float`, replaces a name that it uses",
        ),
        ("nothing of the kind", None, "nothing of the kind"),
        ("", None, "The compiler gave no reason."),
    ],
)
def test_the_first_error_is_found(text: str, line: int | None, message: str) -> None:
    """The output of g++, nvcc, ptxas and the linker also has warnings and command lines. ptxas names a kernel."""
    assert first_error(text, "k = 1\n__global__ void kk() {}\n__global__ void k() {}\n") == (line, message)
