"""Streams in simulated CUDA C++: a function joins what it starts on its own ones, and orders what they share."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.worker.simulator.cuda_library import Buffer, send_buffers
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate

np = pytest.importorskip("numpy")

SOURCE = Path(__file__).with_name("joins.cu")
N = 64
_NAMES = re.findall(r'^extern "C" void (\w+)\(', SOURCE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("joins")
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(f'#include "cuda_on_cpu.h"\n#line 1 "cuda_source"\n{translate(SOURCE.read_text())}')
    compiled = source.with_suffix(".o")
    subprocess.run(["g++", "-c", "-fPIC", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", "-o", compiled, source], check=True)
    subprocess.run(["g++", "-shared", "-o", library, compiled], check=True)
    return library


def said(library: Path, folder: Path, name: str) -> list[str]:
    """Return what a copy of the library says about each of two calls."""
    loaded = ctypes.CDLL(str(shutil.copy(library, folder)))
    loaded.cuda_on_cpu_observed.restype = ctypes.c_char_p
    x, out = np.ones(N, np.float32), np.zeros(N, np.float32)
    send_buffers(
        loaded,
        [Buffer(each.ctypes.data, each.nbytes, 0, 4, each is x, b"") for each in (x, out)],
    )
    found = []
    for _ in range(2):
        loaded[name](ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), N)
        loaded.cuda_on_cpu_returned()
        found.append((loaded.cuda_on_cpu_observed() or b"").decode())
    return found


@pytest.mark.parametrize("name", [name for name in _NAMES if name.startswith("right_")])
def test_joined_streams_raise_no_alarm(built: Path, tmp_path: Path, name: str) -> None:
    """By events, also over several streams, or by the host. The default stream waits for a blocking one by itself."""
    assert said(built, tmp_path, name) == ["", ""]


@pytest.mark.parametrize("name", [name for name in _NAMES if name.startswith("beside_")])
def test_kernels_that_share_memory_on_two_streams_are_named(built: Path, tmp_path: Path, name: str) -> None:
    """One writes what the other uses, in whatever order they are launched."""
    lines = SOURCE.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.endswith(f"// LINE {name}"))
    for text in said(built, tmp_path, name):
        assert text.startswith(f"Race: the kernel launched on line {line + 1} "), text
        assert f"the one launched on line {line} " in text


@pytest.mark.parametrize("name", [name for name in _NAMES if not name.startswith(("right_", "beside_"))])
def test_a_stream_for_which_nothing_waits_is_named(built: Path, tmp_path: Path, name: str) -> None:
    """With the line of the work, in each call."""
    lines = SOURCE.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.endswith(f"// LINE {name}"))
    for text in said(built, tmp_path, name):
        assert text.startswith("Unfinished: the function returns"), text
        assert f" on line {line}. " in text


def test_another_call_of_the_host_waits_for_all(built: Path, tmp_path: Path) -> None:
    """`torch.cuda.synchronize()` asks the library for a failure."""
    loaded = ctypes.CDLL(str(shutil.copy(built, tmp_path)))
    loaded.cuda_on_cpu_observed.restype = ctypes.c_char_p
    x, out = np.ones(N, np.float32), np.zeros(N, np.float32)
    send_buffers(loaded, [Buffer(out.ctypes.data, out.nbytes, 0, 4, False, b"out")])
    loaded.never(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), N)
    loaded.cuda_on_cpu_failure()
    loaded.cuda_on_cpu_returned()
    assert not loaded.cuda_on_cpu_observed()
