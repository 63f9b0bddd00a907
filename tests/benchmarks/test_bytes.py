"""The kernels of the bench `bytes` that are in no notebook compute the right result."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate

torch = pytest.importorskip("torch")

from benchmarks.bytes import GREYS  # noqa: E402

LAUNCH = """
extern "C" void run_{number}(const void* image, void* out, int n) {{
    grayscale_{number}<<<(n + 63) / 64, 64>>>((const {type}*)image, ({type}*)out, n);
}}
"""
TYPES = {1: "unsigned char", 4: "unsigned int", 16: "uint4"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """A library for the CPU with all of them."""
    text = ""
    for source, pixels in GREYS.values():
        kernel = source.replace('extern "C" ', "").replace("grayscale(", f"grayscale_{pixels}(")
        text += kernel + LAUNCH.format(number=pixels, type=TYPES[pixels])
    folder: Path = tmp_path_factory.mktemp("greys")
    (folder / "greys.cpp").write_text(f'#include "cuda_on_cpu.h"\n{translate(text)}')
    flags = [*COMPILER_FLAGS, "-fno-sanitize=all"]
    command = ["c++", "-shared", "-fPIC", *flags, f"-I{INCLUDE}", "-o", "greys.so", "greys.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "greys.so"))


@pytest.mark.parametrize("pixels", TYPES)
def test_every_way_to_grey_is_exact(library: ctypes.CDLL, pixels: int) -> None:
    """Every bit is right for every number of pixels per thread."""
    image = torch.randint(256, (16 * 100, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(pixels))
    image[:2] = torch.tensor([[0, 0, 0], [255, 255, 255]])
    out = torch.full((len(image),), 7, dtype=torch.uint8)
    call = library[f"run_{pixels}"]
    call(ctypes.c_void_p(image.data_ptr()), ctypes.c_void_p(out.data_ptr()), len(image) // pixels)
    red, green, blue = image.int().unbind(-1)
    assert torch.equal(out.int(), (77 * red + 150 * green + 29 * blue + 128) >> 8)
