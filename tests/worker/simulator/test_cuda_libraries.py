"""CUDA's libraries on the CPU: `library_kernels.cu`, built once with g++, which nvcc accepts as well."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate

np = pytest.importorskip("numpy")

SOURCE = Path(__file__).with_name("library_kernels.cu")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Build and load the kernels."""
    folder = tmp_path_factory.mktemp("libraries")
    source, built = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(f'#include "cuda_on_cpu.h"\n#line 1 "cuda_source"\n{translate(SOURCE.read_text())}')
    compiled = source.with_suffix(".o")
    subprocess.run(["c++", "-c", "-fPIC", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", "-o", compiled, source], check=True)
    subprocess.run(["c++", "-shared", "-o", built, compiled], check=True)
    loaded = ctypes.CDLL(str(built))
    loaded.cuda_on_cpu_failure.restype = ctypes.c_char_p
    return loaded


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_groups_of_a_block_and_of_lanes(library: ctypes.CDLL) -> None:
    """Tiles, partitions and the lanes that are active in a branch; the number is the line that is wrong."""
    wrong = np.zeros(1, np.int32)
    library.run_groups(pointer(np.arange(64, dtype=np.float32)), pointer(wrong))
    assert (wrong[0], library.cuda_on_cpu_failure()) == (0, None)


def test_reductions_and_scans_of_cub(library: ctypes.CDLL) -> None:
    """They are right for a block and a warp; a reduction's result is the first thread's alone."""
    wrong, out = np.zeros(1, np.int32), np.zeros(64)
    library.run_sums(pointer(wrong))
    assert (wrong[0], library.cuda_on_cpu_failure()) == (0, None)
    library.run_undefined_sum(pointer(out))
    assert out[0] == 64
    assert np.isnan(out[1:]).all()


@pytest.mark.parametrize("waits", [0, 1, 2])
def test_asynchronous_copies_are_made_when_their_thread_waits(library: ctypes.CDLL, waits: int) -> None:
    """A group that was not waited for has left shared memory without a value."""
    x, out = np.arange(256, dtype=np.float32), np.zeros(320, np.float32)
    library.run_pipeline(pointer(x), pointer(out), waits)
    assert library.cuda_on_cpu_failure() is None
    first, second = out[:256], out[256:]
    assert (first == x[::-1]).all() if waits else np.isnan(first).all()
    assert (second == [*range(1, 63), 0, 0]).all() if waits > 1 else np.isnan(second).all()


def test_half_precision_rounds_once(library: ctypes.CDLL) -> None:
    """Sums, products and quotients are NumPy's, for normal and subnormal numbers, infinities and NaN."""
    generator = np.random.default_rng(0)
    x, y = generator.integers(0, 1 << 16, (2, 20_000)).astype(np.uint16).view(np.float16)
    got = np.zeros((8, x.size), np.float16)
    library.run_halves(pointer(x), pointer(y), pointer(got), x.size)
    with np.errstate(all="ignore"):
        wide, other = x.astype(np.float64), y.astype(np.float64)
        third = (x.astype(np.float32) / np.float32(3)).astype(np.float16)
        larger = np.where(x > y, x, y)
        expected = [x + y, x * y, x / y, (wide * other + wide).astype(np.float16), third]
        for row, values in enumerate(expected):
            np.testing.assert_array_equal(got[row], values)
        short = np.abs(got[5]) <= np.abs(x.astype(np.float32) / 3)
        assert (short | np.isnan(x)).all()
        assert (np.abs(got[5].view(np.int16).astype(int) - third.view(np.int16)) <= 1)[~np.isnan(x)].all()
        np.testing.assert_array_equal(got[6], larger * np.float16(2))
        close = (np.abs(x) > 1e-3) & (np.abs(x) < 6e4)
        np.testing.assert_allclose(got[7][close], x[close], rtol=2**-8)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_the_kernels_are_cuda(tmp_path: Path) -> None:
    """NVIDIA's compiler accepts the kernels of these tests."""
    command = ["nvcc", "-arch=sm_90", "-std=c++17", "-c", SOURCE, "-o", tmp_path / "kernels.o"]
    subprocess.run(command, check=True)
