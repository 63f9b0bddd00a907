"""Traffic, memory instructions and build files are counted, not claimed."""

from __future__ import annotations

import pytest
import torch

from grader.explore import count_traffic, lines_after_includes, memory_instructions, show_build_files

M, N = 16, 64


def test_the_eager_softmax_moves_8mn_plus_4m() -> None:
    """The count that the softmax notebook explains: 5MN + 2M read, 3MN + 2M written."""

    def eager(x: torch.Tensor) -> torch.Tensor:
        numerator = (x - x.amax(dim=1, keepdim=True)).exp()
        return numerator / numerator.sum(dim=1, keepdim=True)

    traffic = count_traffic(eager, torch.randn(M, N))
    assert [step.operation for step in traffic.steps] == ["amax", "sub", "exp", "sum", "div"]
    assert sum(step.read_bytes for step in traffic.steps) == 4 * (5 * M * N + 2 * M)
    assert sum(step.written_bytes for step in traffic.steps) == 4 * (3 * M * N + 2 * M)
    assert traffic.total == pytest.approx(8 + 4 / N)


def test_views_move_nothing() -> None:
    """A transpose, a slice and a reshape are free; only the copy counts."""
    traffic = count_traffic(lambda x: x.t()[1:].clone(), torch.ones(M, N))
    assert [step.operation for step in traffic.steps] == ["clone"]
    assert traffic.total_bytes == 2 * 4 * M * (N - 1)


def test_a_result_written_to_out_is_written_once() -> None:
    """A destination is written, not read."""
    x, out = torch.ones(M, N), torch.empty(M, N)
    (step,) = count_traffic(lambda x: torch.exp(x, out=out), x).steps
    assert (step.read_bytes, step.written_bytes) == (4 * M * N, 4 * M * N)


def test_an_operation_in_place_reads_and_writes() -> None:
    """`x += 1` reads x and writes x."""
    (step,) = count_traffic(lambda x: x.add_(1), torch.ones(M, N)).steps
    assert (step.read_bytes, step.written_bytes) == (4 * M * N, 4 * M * N)


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

@triton.jit
def broken_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.no_such_thing(x_ptr))
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    import importlib.util

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("kernels_of_test_counts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TYPES = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}


def test_loads_are_16_bytes_wide_only_where_the_compiler_may_assume_it(kernels) -> None:  # type: ignore[no-untyped-def]
    """The width of a load depends on what is known of pointers and size, as the notebook says; no GPU is needed."""
    wide = memory_instructions(kernels.copy_kernel, TYPES, {"BLOCK": 1024}, ("x_ptr", "out_ptr", "n"))
    narrow = memory_instructions(kernels.copy_kernel, TYPES, {"BLOCK": 1024}, ("x_ptr", "out_ptr"))
    assert wide == {"load of 16 bytes": 2, "store of 16 bytes": 2}
    assert narrow == {"load of 4 bytes": 8, "store of 4 bytes": 8}


def test_a_kernel_that_does_not_compile_says_why(kernels) -> None:  # type: ignore[no-untyped-def]
    """The compiler's last line reaches the learner, without the traceback of the process it ran in."""
    with pytest.raises(RuntimeError, match=r"broken_kernel does not compile: .*no_such_thing") as caught:
        memory_instructions(kernels.broken_kernel, TYPES, {"BLOCK": 16})
    assert "\n" not in str(caught.value)


SOURCE = "__global__ void negate_kernel(float* x) { x[0] = -x[0]; }\n"


def test_load_inline_writes_three_files() -> None:
    """The source, the binding with the function's name, and the build file with both compilers."""
    files = show_build_files(SOURCE, ["negate"], "void negate(torch::Tensor x);")
    assert list(files.files) == ["cuda.cu", "main.cpp", "build.ninja"]
    assert "#include <torch/types.h>" in files["cuda.cu"]
    assert SOURCE.strip() in files["cuda.cu"]
    assert 'm.def("negate"' in files["main.cpp"]
    assert "-gencode=arch=compute_" in files["build.ninja"]
    assert "nvcc" in files["build.ninja"]


def test_without_torch_headers_nothing_is_left_of_the_binding() -> None:
    """`no_implicit_headers` and no functions: main.cpp is empty and cuda.cu is the source alone."""
    files = show_build_files(SOURCE, torch_headers=False)
    assert files["main.cpp"] == ""
    assert files["cuda.cu"] == SOURCE.strip()


def test_no_path_of_this_machine_is_shown() -> None:
    """Build files are shown with short paths: a learner's home folder says nothing."""
    import sys

    files = show_build_files(SOURCE, ["negate"], "void negate(torch::Tensor x);")
    assert sys.prefix not in repr(files)


def test_a_torch_header_is_a_hundred_thousand_lines() -> None:
    """What the notebook has the learner predict: one `#include` is more than 100,000 lines, a kernel is a few."""
    assert (lines_after_includes("#include <torch/extension.h>") or 0) > 100_000
    assert lines_after_includes("int a;\n\nint b;\n") == 2


def test_a_header_that_is_not_there_is_named() -> None:
    """The compiler's first error is the message."""
    with pytest.raises(RuntimeError, match=r"no_such_header\.h"):
        lines_after_includes("#include <no_such_header.h>")
