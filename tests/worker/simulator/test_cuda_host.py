"""Memory that the host and the GPU share in simulated CUDA C++, and memory of one that the other may not use."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate

np = pytest.importorskip("numpy")

SOURCE = Path(__file__).with_name("host_kernels.cu")
N = 64
_NAMES = re.findall(r'^extern "C" float (\w+)\(', SOURCE.read_text(), re.MULTILINE)
RIGHT = [name for name in _NAMES if name.startswith("right_")]
UNFINISHED = [name for name in _NAMES if name.startswith(("reads_", "writes_"))]
OF_THE_HOST = [name for name in _NAMES if name.startswith("from_")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(f'#include "cuda_on_cpu.h"\n#line 1 "cuda_source"\n{translate(SOURCE.read_text())}')
    compiled = source.with_suffix(".o")
    subprocess.run(["c++", "-c", "-fPIC", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", "-o", compiled, source], check=True)
    subprocess.run(["c++", "-shared", "-o", library, compiled], check=True)
    return library


def said(library: Path, folder: Path, name: str) -> str:
    """Return what a copy of the library says about one call: a failure lasts."""
    loaded = ctypes.CDLL(str(shutil.copy(library, folder)))
    loaded.cuda_on_cpu_failure.restype = ctypes.c_char_p
    x, out = np.ones(N, np.float32), np.zeros(N, np.float32)
    loaded[name](ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), N)
    return (loaded.cuda_on_cpu_failure() or b"").decode()


def line_of(name: str) -> int:
    return next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if line.endswith(f"// LINE {name}"))


@pytest.mark.parametrize("name", RIGHT)
def test_what_the_host_may_do_is_left_alone(built: Path, tmp_path: Path, name: str) -> None:
    """It reads what the GPU does not write, and uses everything after it has waited."""
    assert said(built, tmp_path, name) == ""


@pytest.mark.parametrize("name", UNFINISHED)
def test_memory_that_the_gpu_still_uses_is_named(built: Path, tmp_path: Path, name: str) -> None:
    """The host reads what a kernel or a copy writes, or writes what it reads."""
    text = said(built, tmp_path, name)
    assert text.startswith(f"Unfinished: the host {name.partition('_')[0]} "), text
    assert f" on line {line_of(name)}, but it does not wait" in text


@pytest.mark.parametrize("name", OF_THE_HOST)
def test_a_kernel_that_gets_memory_of_the_host_is_named(built: Path, tmp_path: Path, name: str) -> None:
    """From `malloc`, `new`, a vector or a variable."""
    what = "the address of a variable of the host" if name == "from_static" else "memory that the host allocated"
    number = 2 if name == "from_vector" else 1
    assert (
        said(built, tmp_path, name) == f"Host: the launch on line {line_of(name)} passes {what} as argument {number}."
    )


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_the_kernels_are_cuda(tmp_path: Path) -> None:
    """NVIDIA's compiler accepts them."""
    command = ["nvcc", "-arch=sm_90", "-std=c++17", "-c", SOURCE, "-o", tmp_path / "kernels.o"]
    subprocess.run(command, check=True)
