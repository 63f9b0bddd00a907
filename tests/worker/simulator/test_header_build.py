"""Headers that are built once serve every cell, and report what the headers alone report."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.protocol.target import PREBUILT
from grader.worker.simulator import cuda_source, cupy_kernels, header_build
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, translate

RACE = """
__device__ float total;
__global__ void add(const float* x) { total += x[threadIdx.x]; }
extern "C" void run(const float* x) { add<<<1, 32>>>(x); }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built headers."""
    folder = tmp_path_factory.mktemp("prebuilt")
    header_build.build(folder)
    header_build.build(folder)  # the object is not built from the header that is there now
    return folder


def _race(folder: Path) -> str:
    """Return the report of a cell with a race, built with the parts that are there."""
    flags, include, objects = header_build.parts()
    source, object_file, library = (folder / f"cell.{ending}" for ending in ("cpp", "o", "so"))
    source.write_text('#include "cuda_on_cpu.h"\n#line 1 "cell"\n' + translate(RACE))
    given = [
        "-fPIC",
        "-Winvalid-pch",
        "-Werror=invalid-pch",
        *COMPILER_FLAGS,
        *flags,
        *(f"-I{each}" for each in include),
    ]
    subprocess.run(["g++", "-c", *given, source, "-o", object_file], check=True)
    subprocess.run(["g++", "-shared", object_file, *objects, "-o", library], check=True)
    cell = ctypes.CDLL(str(library))
    cell.run((ctypes.c_float * 32)())
    cell.cuda_on_cpu_observed.restype = cell.cuda_on_cpu_failure.restype = ctypes.c_char_p
    return str(cell.cuda_on_cpu_failure() or cell.cuda_on_cpu_observed())


def test_a_cell_reports_the_same_with_and_without(built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The precompiled header is valid for the flags of a cell, and its parts share one state with the cell."""
    (tmp_path / "with").mkdir()
    monkeypatch.delenv(PREBUILT, raising=False)
    alone = _race(tmp_path)
    monkeypatch.setenv(PREBUILT, str(built))
    assert header_build.parts().objects
    assert _race(tmp_path / "with") == alone
    assert "Race: thread 1" in alone


def test_nothing_is_used_that_does_not_fit(built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty folder, and code whose variables begin as 0, get the headers alone."""
    monkeypatch.setenv(PREBUILT, str(tmp_path))
    assert header_build.parts().objects == []
    monkeypatch.setenv(PREBUILT, str(built))
    monkeypatch.setattr(cuda_source, "COMPILER_FLAGS", list(COMPILER_FLAGS))
    cuda_source.zero_variables()
    assert header_build.parts().objects == []


def test_without_a_compiler_nothing_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The judge goes on."""
    monkeypatch.setenv("PATH", str(tmp_path))
    header_build.build(tmp_path)
    assert not list(tmp_path.glob("*.o"))


_LOGS = '#!/bin/sh\necho "$@" >> {log}\nexec {gcc} "$@"\n'
_CLANG = "#!/bin/sh\necho clang version 19.1.7\n"


def _program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_all_paths_take_gcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CXX counts only if it is GCC, and then for CuPy and the headers too; torch reads CXX."""
    gcc = shutil.which("g++")
    monkeypatch.setenv("CXX", str(_program(tmp_path / "clang++", _CLANG)))
    header_build.use_compiler()
    assert os.environ["CXX"] == "g++"
    monkeypatch.setenv("CXX", f"'{gcc}")  # the other quotation mark is missing
    assert header_build.compiler() == ["g++"]

    log = tmp_path / "log"
    own = _program(tmp_path / "own c++", _LOGS.format(log=log, gcc=gcc))
    monkeypatch.setenv("CXX", f"'{own}' -pipe")
    cupy_kernels.build('extern "C" __global__ void one(int* x) { *x = 1; }', (), ("one",), "")
    header_build.build(tmp_path)
    used = log.read_text()
    assert "-pipe -c " in used
    assert "-pipe -shared" in used
    assert "c++-header" in used
    header_build.use_compiler()
    assert os.environ["CXX"] == f"'{own}' -pipe"


def test_another_compiler_alone_is_a_missing_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`c++` may be Clang, which cannot build the simulator."""
    _program(tmp_path / "c++", _CLANG)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(RuntimeError, match=r"g\+\+: not found"):
        header_build.compiler()
