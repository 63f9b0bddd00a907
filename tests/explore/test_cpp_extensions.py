"""Build files and operators are shown as PyTorch writes and registers them."""

from __future__ import annotations

import pytest
import torch

from grader.explore import draw_operator, lines_after_includes, show_build_files
from grader.explore.torch_compile.cpp_extensions import registered

SOURCE = "__global__ void negate_kernel(float* x) { x[0] = -x[0]; }\n"


def test_load_inline_writes_three_files() -> None:
    """They are the source, the binding with the function's name, and the build file with both compilers."""
    files = show_build_files(SOURCE, ["negate"], "void negate(torch::Tensor x);")
    assert list(files.files) == ["cuda.cu", "main.cpp", "build.ninja"]
    assert "#include <torch/types.h>" in files["cuda.cu"]
    assert SOURCE.strip() in files["cuda.cu"]
    assert 'm.def("negate"' in files["main.cpp"]
    assert "-gencode=arch=compute_" in files["build.ninja"]
    assert "nvcc" in files["build.ninja"]


def test_without_torch_headers_nothing_is_left_of_the_binding() -> None:
    """With `no_implicit_headers` and no functions, main.cpp is empty and cuda.cu is only the source."""
    files = show_build_files(SOURCE, torch_headers=False)
    assert files["main.cpp"] == ""
    assert files["cuda.cu"] == SOURCE.strip()


def test_no_path_of_this_machine_is_shown() -> None:
    """Build files are shown with short paths, without a learner's home folder."""
    import sys

    files = show_build_files(SOURCE, ["negate"], "void negate(torch::Tensor x);")
    assert sys.prefix not in repr(files)


def test_a_torch_header_is_a_hundred_thousand_lines() -> None:
    """The notebook's prediction holds: one `#include` is more than 100,000 lines, a kernel only a few."""
    assert (lines_after_includes("#include <torch/extension.h>") or 0) > 100_000
    assert lines_after_includes("int a;\n\nint b;\n") == 2


def test_a_header_that_is_not_there_is_named() -> None:
    """The message is the compiler's first error."""
    with pytest.raises(RuntimeError, match=r"no_such_header\.h"):
        lines_after_includes("#include <no_such_header.h>")


@pytest.fixture
def twice():
    @torch.library.custom_op("tests_explore::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    return twice


def test_each_part_shows_once_it_is_registered(twice):
    """A new operator has only a kernel; fake and gradient appear when they are registered."""
    assert registered(twice) == {"kernel": True, "fake": False, "gradient": False}
    assert "hatched: fake and gradient." in draw_operator(twice).alt
    twice.register_fake(torch.empty_like)
    assert registered(twice) == {"kernel": True, "fake": True, "gradient": False}
    twice.register_autograd(lambda ctx, grad: 2 * grad)
    assert registered(twice) == {"kernel": True, "fake": True, "gradient": True}


def test_the_picture_names_the_operator(twice):
    """The alt text has the schema that PyTorch derived from the type hints, and says if nothing is missing."""
    twice.register_fake(torch.empty_like)
    twice.register_autograd(lambda ctx, grad: 2 * grad)
    picture = draw_operator(twice)
    assert "tests_explore::twice(Tensor x) -> Tensor" in picture.alt
    assert "All three are registered." in picture.alt
    assert picture.svg.startswith("<?xml")


def test_what_is_no_operator_is_refused():
    """A plain function has nothing registered; the message says what is needed."""
    with pytest.raises(TypeError, match="custom_op"):
        draw_operator(len)
