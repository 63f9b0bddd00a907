"""The machine's GPUs and a usable CUDA toolkit are found without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grader import hardware
from grader.hardware import Gpu, cuda_home, cuda_version, extra, gpus, nsight_modules, torch_cuda

HOPPER = Gpu("NVIDIA H200", "580.95.05", 143771, "9.0")


def _program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _toolkit(home: Path, version: int) -> Path:
    _program(home / "bin" / "nvcc", "exit 0")
    (home / "include").mkdir(parents=True)
    (home / "include" / "cuda_runtime.h").write_text("")
    (home / "include" / "cuda.h").write_text(f"#define CUDA_VERSION {version}\n")
    return home


def _pip_toolkit(site: Path) -> Path:
    home = _toolkit(site / "nvidia" / "cu13", 13000)
    (home / "nvvm").mkdir()
    (home / "lib").mkdir()
    (home / "lib" / "libcudart.so.13").write_text("library")
    (home / "lib" / "libcudart_static.a").write_text("archive")
    return home


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a toolkit and GPU tools; its caches are in tmp_path."""
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(hardware, "_INSTALLED", (tmp_path / "usr" / "cuda",))
    monkeypatch.setattr(hardware, "_PLACES", tmp_path / "usr")
    monkeypatch.setattr(hardware, "_pip_folders", lambda: [tmp_path / "site" / "nvidia"])
    return tmp_path


def test_gpus_are_read_from_nvidia_smi(bare: Path) -> None:
    """The output has name, driver, memory and compute capability, with one GPU per line."""
    _program(bare / "programs" / "nvidia-smi", "echo 'NVIDIA H200, 580.95.05, 143771, 9.0'")
    assert gpus() == (HOPPER,)


def test_a_driver_that_does_not_answer_is_no_gpu(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi without a driver ends with an error and prints no table."""
    _program(bare / "programs" / "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    monkeypatch.setattr(hardware, "_from_libcuda", tuple)
    assert gpus() == ()


def test_hidden_gpus_do_not_count(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA_VISIBLE_DEVICES hides them from CUDA, so they are hidden here."""
    _program(bare / "programs" / "nvidia-smi", "echo 'NVIDIA H200, 580.95.05, 143771, 9.0'")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus() == ()


@pytest.mark.parametrize(
    ("visible", "found"), [("1", ["B"]), ("2, 0", ["C", "A"]), ("0,7,1", ["A"]), ("GPU-1f", ["A", "B", "C"])]
)
def test_gpus_are_counted_as_cuda_counts_them(
    bare: Path, monkeypatch: pytest.MonkeyPatch, visible: str, found: list[str]
) -> None:
    """nvidia-smi lists all GPUs, and CUDA those of CUDA_VISIBLE_DEVICES, up to the first that does not exist."""
    _program(bare / "programs" / "nvidia-smi", 'for name in A B C; do echo "$name, 580.95.05, 143771, 9.0"; done')
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.name for gpu in gpus()] == found


_LIBCUDA = """
#include <cstring>
extern "C" {
int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int) { *device = 0; return 0; }
int cuDeviceGetName(char *name, int, int) { std::strcpy(name, "NVIDIA H100 MIG 1g.10gb"); return 0; }
int cuDeviceTotalMem_v2(std::size_t *size, int) { *size = 9984UL << 20; return 0; }
int cuDeviceGetAttribute(int *found, int attribute, int) { *found = attribute == 75 ? 9 : 0; return 0; }
}
"""


def test_the_drivers_library_is_asked_without_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each device has its name, memory and compute capability; the driver's version is not known then."""
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", tmp_path / "libcuda.so.1"], input=_LIBCUDA, text=True,
        check=True,
    )  # fmt: skip
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(hardware, "_from_nvidia_smi", lambda: ((), False))
    assert gpus() == (Gpu("NVIDIA H100 MIG 1g.10gb", "", 9984, "9.0"),)


@pytest.mark.parametrize(("mode", "visible"), [("Enabled", None), ("[N/A]", "MIG-1f")])
def test_a_slice_of_a_gpu_is_named_as_cuda_names_it(
    bare: Path, monkeypatch: pytest.MonkeyPatch, mode: str, visible: str | None
) -> None:
    """nvidia-smi describes the whole GPU, and a learner sees a slice of it."""
    _program(bare / "programs" / "nvidia-smi", f"echo 'NVIDIA H100, 580.95.05, 81559, 9.0, {mode}'")
    share = Gpu("NVIDIA H100 MIG 1g.10gb", "", 9984, "9.0")
    monkeypatch.setattr(hardware, "_from_libcuda", lambda: (share,))
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus() == (replace(share, driver="580.95.05"),)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ((), ""),
        ((HOPPER,), "gpu"),
        ((Gpu("unknown driver"),), "gpu"),
        ((Gpu("NVIDIA A100", "535.183.01", 40960, "8.0"),), "gpu-cu12"),
        ((Gpu("Tesla V100", "580.95.05", 16384, "7.0"),), "gpu-cu12"),
    ],
)
def test_the_extra_fits_driver_and_card(found: tuple[Gpu, ...], wanted: str) -> None:
    """CUDA 13 needs driver 580 and Turing; older machines get CUDA 12."""
    assert extra(found) == wanted


def test_the_makefile_can_ask_before_anything_is_installed() -> None:
    """The module runs with the standard library alone."""
    root = Path(__file__).resolve().parents[1]
    answer = subprocess.run(
        [sys.executable, "-S", "-m", "grader.hardware"],
        env={**os.environ, "PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": ""},
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stdout == "\n"


def test_no_toolkit_is_none(bare: Path) -> None:
    """A machine without nvcc has no CUDA_HOME, even if it has CUDA's headers."""
    (bare / "usr" / "cuda" / "include").mkdir(parents=True)
    assert cuda_home() is None


def test_the_systems_toolkit_comes_before_pips(bare: Path) -> None:
    """A system toolkit is preferred."""
    _pip_toolkit(bare / "site")
    system = _toolkit(bare / "usr" / "cuda", 13000)
    assert cuda_home(13) == system


def test_a_toolkit_of_another_version_comes_after_pips(bare: Path) -> None:
    """The version that torch is built for counts more than the origin of the toolkit."""
    _pip_toolkit(bare / "site")
    system = _toolkit(bare / "usr" / "cuda", 12080)
    assert cuda_version(system) == "12.8"
    found = cuda_home(13)
    assert found is not None
    assert cuda_version(found) == "13.0"
    assert cuda_home(12) == system


def test_an_nvcc_that_is_only_a_script_does_not_hide_its_toolkit(bare: Path) -> None:
    """/usr/local/bin/nvcc may be a wrapper; the folder above it is not a toolkit."""
    _program(bare / "programs" / "nvcc", "exit 0")
    assert cuda_home() is None
    newest = _toolkit(bare / "usr" / "cuda-13.1", 13010)
    for older in ("12.9", "9.2"):
        _toolkit(bare / "usr" / f"cuda-{older}", 9020)
    assert cuda_home() == newest


def test_the_module_of_ncu_is_found_beside_it_or_beside_the_toolkits_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest first, after the one next to the program; a link is followed."""
    monkeypatch.setattr(hardware, "_NSIGHT", tmp_path / "opt")
    homes = [
        tmp_path / "cuda" / "nsight-compute-2025.3.1",
        tmp_path / "opt" / "2025.10.0",
        tmp_path / "opt" / "2024.1.0",
    ]
    for home in homes:
        (home / "extras" / "python").mkdir(parents=True)
        _program(home / "ncu", "exit 0")
    script = _program(tmp_path / "cuda" / "bin" / "ncu", "exit 0")
    assert nsight_modules(script) == [homes[at] / "extras" / "python" for at in (1, 0, 2)]
    link = tmp_path / "ncu"
    link.symlink_to(homes[2] / "ncu")
    assert nsight_modules(link)[0] == homes[2] / "extras" / "python"


def test_pips_toolkit_can_be_linked_with(bare: Path) -> None:
    """pip's toolkit has no libcudart.so. Our folder of links has one in lib64, and pip's own folder is not changed."""
    pip = _pip_toolkit(bare / "site")
    before = sorted(pip.rglob("*"))
    home = cuda_home(13)
    assert home is not None
    assert home.is_relative_to(bare / "cache")
    assert (home / "lib64" / "libcudart.so").read_text() == "library"
    assert (home / "lib64" / "libcudart_static.a").read_text() == "archive"
    assert os.access(home / "bin" / "nvcc", os.X_OK)
    assert sorted(pip.rglob("*")) == before
    assert cuda_home(13) == home


def test_links_follow_a_package_that_moved(bare: Path) -> None:
    """A link that points to nothing, as after a reinstall, is made again."""
    _pip_toolkit(bare / "site")
    home = cuda_home()
    assert home is not None
    link = home / "lib64" / "libcudart.so"
    link.unlink()
    link.symlink_to(bare / "gone")
    assert cuda_home() == home
    assert link.read_text() == "library"


@pytest.mark.parametrize(
    ("line", "version"),
    [("cuda: Optional[str] = '13.0'", 13), ("cuda = '12.8'", 12), ("cuda: Optional[str] = None", None)],
)
def test_the_cuda_version_of_torch_is_read_from_its_files(
    line: str, version: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing torch would take seconds."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise AssertionError('imported')")
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.13.0'\n{line}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert torch_cuda() == version


@pytest.mark.gpu
def test_a_gpu_is_seen() -> None:
    """On a GPU machine the GPU has a name, and CUDA describes it as nvidia-smi does."""
    assert gpus()[0].name
    (first, *_) = hardware._from_libcuda()
    assert (first.name, first.compute_capability) == (gpus()[0].name, gpus()[0].compute_capability)
