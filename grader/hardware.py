"""The GPUs, driver and CUDA toolkit of this machine, found without torch. Standard library only."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

CUDA_13_DRIVER = 580  # the oldest driver branch that runs CUDA 13
_PLACES = Path("/usr/local")
_INSTALLED = (_PLACES / "cuda", Path("/opt/cuda"))
_NSIGHT = Path("/opt/nvidia/nsight-compute")
_CUDA_13_CAPABILITY = 7.5  # the oldest cards that CUDA 13 builds for: Turing


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU. `driver` is the driver's version, "" if only libcuda could be asked."""

    name: str
    driver: str = ""
    memory_mib: int = 0
    compute_capability: str = ""

    @property
    def driver_branch(self) -> int:
        """580 for driver 580.95.05; 0 if the version is not known."""
        return int(self.driver.split(".")[0]) if self.driver[:1].isdigit() else 0

    @property
    def capability(self) -> float:
        """9.0 for a Hopper card; 0.0 if it is not known."""
        return float(self.compute_capability) if self.compute_capability[:1].isdigit() else 0.0


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that CUDA programs in this process's environment can use; empty if there are none."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return ()
    listed, has_slices = _from_nvidia_smi()
    if listed and not has_slices and _by_number():
        return _visible(listed)
    # CUDA_VISIBLE_DEVICES names GPUs or slices (MIG), or nvidia-smi is missing: ask CUDA itself.
    driver = listed[0].driver if listed else ""
    return tuple(replace(gpu, driver=driver) for gpu in _from_libcuda()) or _visible(listed)


def extra(found: tuple[Gpu, ...]) -> str:
    """The extra of this package that fits the machine: "" (no GPU), "gpu" (CUDA 13) or "gpu-cu12"."""
    if not found:
        return ""
    old_driver = 0 < found[0].driver_branch < CUDA_13_DRIVER
    old_card = any(0 < gpu.capability < _CUDA_13_CAPABILITY for gpu in found)
    return "gpu-cu12" if old_driver or old_card else "gpu"


def cuda_home(major: int | None = None) -> Path | None:
    """The CUDA toolkit to build with, as torch's `CUDA_HOME` wants it; None if there is no compiler.

    A system toolkit comes before pip's compiler. pip's has `lib` instead of `lib64` and no `libcudart.so` to link with,
    so the result is a folder of links in our cache.

    Args:
        major: the CUDA version to prefer, as in `torch.version.cuda`: mixing two breaks at link time, or later.
    """
    found = [home for home in _system_homes() if _is_toolkit(home)]
    pip_home = _pip_home()
    if pip_home is not None:
        found.append(pip_home)
    if major is not None:
        found.sort(key=lambda home: _major(home) != major)  # stable: system toolkits stay first
    if not found:
        return None
    return _linked(found[0]) if found[0] == pip_home else found[0]


def toolkit(environment: Mapping[str, str]) -> dict[str, str]:
    """`CUDA_HOME`, if the environment does not set it: torch would guess, and Numba would find no compiler."""
    if torch_cuda() is None or any(environment.get(name) for name in ("CUDA_HOME", "CUDA_PATH")):
        return {}
    home = cuda_home(torch_cuda())
    return {} if home is None else {"CUDA_HOME": str(home)}


def nsight_compute() -> Path | None:
    """Nsight Compute's program `ncu`: on PATH, in a CUDA toolkit, or in its own folder; None if it is not installed."""
    found = [Path(program)] if (program := shutil.which("ncu")) else []
    found += [home / "bin" / "ncu" for home in _system_homes()]
    found += sorted(_NSIGHT.glob("*/ncu"), key=_numbers, reverse=True)
    return next((path for path in found if os.access(path, os.X_OK)), None)


def nsight_modules(program: Path) -> list[Path]:
    """The folders with Nsight Compute's Python module `ncu_report`: first that of this `ncu`, then the newest.

    In a toolkit's `bin`, `ncu` is a script; Nsight Compute itself is next to `bin` or in `/opt/nvidia`.
    """
    home = program.resolve().parent
    found = [*home.parent.glob("nsight-compute-*"), *home.parent.glob("nsight-compute/*"), *_NSIGHT.glob("*")]
    folders = [home, *sorted(found, key=_numbers, reverse=True)]
    return [each / "extras" / "python" for each in folders if (each / "extras" / "python").is_dir()]


def cuda_version(home: Path) -> str:
    """A toolkit's version, such as "13.0", read from its headers; "" if they do not say."""
    for header in (home / "include" / "cuda.h", home / "include" / "cuda_runtime_api.h"):
        try:
            match = re.search(r"#define\s+(?:CUDA_VERSION|CUDART_VERSION)\s+(\d+)", header.read_text(errors="replace"))
        except OSError:
            continue
        if match:
            number = int(match.group(1))
            return f"{number // 1000}.{number % 1000 // 10}"
    return ""


def torch_cuda() -> int | None:
    """The major version of CUDA that the installed torch is built for, without importing it; None for the CPU build."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"^cuda\b[^=]*=\s*['\"](\d+)", text, re.MULTILINE)
    return int(match.group(1)) if match else None


def cache_folder() -> Path:
    """The folder for files that can be made again, `$XDG_CACHE_HOME/grader`; not created here."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grader"


def _from_nvidia_smi() -> tuple[tuple[Gpu, ...], bool]:
    """All GPUs of the machine, and whether one is divided into slices, which CUDA counts as devices (MIG)."""
    program = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
    if program is None:
        return (), False
    query = "--query-gpu=name,driver_version,memory.total,compute_cap,mig.mode.current"
    try:
        answer = subprocess.run(
            [program, query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return (), False
    if answer.returncode != 0:
        return (), False
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]
    found = [Gpu(row[0], row[1], int(row[2]) if row[2].isdigit() else 0, row[3]) for row in rows if len(row) >= 4]
    return tuple(found), any(row[4:] == ["Enabled"] for row in rows)


def _by_number() -> bool:
    """Whether CUDA_VISIBLE_DEVICES is not set or counts GPUs, so that nvidia-smi's list can be used."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible is None or all(name.strip().isdecimal() for name in visible.split(","))


def _visible(found: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES names by number, in its order; nvidia-smi itself shows all of them."""
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    if not all(name.isdecimal() for name in names):  # not set, or names that nvidia-smi was not asked for
        return found
    return tuple(found[int(name)] for name in itertools.takewhile(lambda name: int(name) < len(found), names))


def _from_libcuda() -> tuple[Gpu, ...]:
    """Asks the driver's library in a separate process: CUDA must not be initialised in a caller that may fork."""
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-c", _ASK_LIBCUDA], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    rows = [line.split("\t") for line in answer.stdout.splitlines()] if answer.returncode == 0 else []
    return tuple(Gpu(row[0], "", int(row[1]), row[2]) for row in rows if len(row) == 3)


_ASK_LIBCUDA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
for index in range(count.value):
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    assert cuda.cuDeviceGet(ctypes.byref(device), index) == 0
    assert cuda.cuDeviceGetName(name, 256, device) == 0
    size, major, minor = ctypes.c_size_t(), ctypes.c_int(), ctypes.c_int()
    assert cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0
    for found, attribute in ((major, 75), (minor, 76)):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
        assert cuda.cuDeviceGetAttribute(ctypes.byref(found), attribute, device) == 0
    print(name.value.decode(errors="replace"), size.value >> 20, f"{major.value}.{minor.value}", sep="\t")
"""


def _system_homes() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    nvcc = shutil.which("nvcc")
    if nvcc and not Path(nvcc).resolve().is_relative_to(Path(sys.prefix).resolve()):
        yield Path(nvcc).resolve().parents[1]
    yield from _INSTALLED
    yield from sorted(_PLACES.glob("cuda-*"), key=_numbers, reverse=True)


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def _is_toolkit(home: Path) -> bool:
    return os.access(home / "bin" / "nvcc", os.X_OK) and (home / "include" / "cuda_runtime.h").is_file()


def _major(home: Path) -> int:
    return int(cuda_version(home).split(".")[0] or 0)


def _pip_home() -> Path | None:
    """pip's CUDA 13 packages share one folder, `nvidia/cu13`; those for CUDA 12 have no nvcc."""
    return next((folder / "cu13" for folder in _pip_folders() if _is_toolkit(folder / "cu13")), None)


def _pip_folders() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []


def _linked(pip_home: Path) -> Path:
    """A folder with the layout of a toolkit, made of links into pip's; made once, safe for concurrent callers."""
    version = cuda_version(pip_home) or "13"
    key = hashlib.sha256(str(pip_home).encode()).hexdigest()[:8]
    home = cache_folder() / f"cuda-{version}-{key}"
    for name in ("bin", "include", "nvvm"):
        _link(home / name, pip_home / name)
    for library in sorted((pip_home / "lib").iterdir()):
        _link(home / "lib64" / library.name, library)
        if ".so." in library.name:
            _link(home / "lib64" / (library.name.split(".so.")[0] + ".so"), library)
    return home


def _link(link: Path, target: Path) -> None:
    if not target.exists() or (link.is_symlink() and os.readlink(link) == str(target)):
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    os.replace(fresh, link)


if __name__ == "__main__":  # the Makefile asks this before anything is installed
    print(extra(gpus()))
