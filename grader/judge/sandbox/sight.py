"""What a cage shows of the file system, read-only and each at its own place, and what it hides within that."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import shutil
import site
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from grader.exercises import found
from grader.hardware import cuda_home, torch_cuda

# The one GPU that a worker may use: its device nodes, the name by which CUDA finds it, the toolkit to build with.

_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/dxg")  # the last is WSL's
_MIG = "/dev/nvidia-caps"


@dataclass(frozen=True)
class GpuAccess:
    """Device nodes, what CUDA_VISIBLE_DEVICES is with them, and CUDA's home."""

    nodes: tuple[str, ...] = ()
    visible: str = ""
    toolkit: Path | None = None


def gpu_access(device: str) -> GpuAccess | None:
    """For "cuda", CUDA's device 0 of this process's environment; None for "simulator"."""
    return GpuAccess(*_nodes(), cuda_home(torch_cuda())) if device == "cuda" else None


@functools.cache
def _nodes() -> tuple[tuple[str, ...], str]:
    """With the nodes of every GPU there is where NVML does not know the one's minor number."""
    bus, visible = _device_0()
    shared = [path for path in _SHARED if os.path.exists(path)]
    own = sorted(glob("/dev/nvidia[0-9]*"))
    with contextlib.suppress(Exception):  # no NVML, or one that does not know this GPU
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        node = f"/dev/nvidia{nvml.nvmlDeviceGetMinorNumber(nvml.nvmlDeviceGetHandleByPciBusId(bus))}"
        own = [node] if node in own else own
    if visible.startswith("MIG-") and os.path.exists(_MIG):
        shared.append(_MIG)
    return (*own, *shared), visible


def _device_0() -> tuple[str, str]:
    """Its PCI bus id, and "GPU-…" or, for a share of one, "MIG-…". Asked of the driver, who alone knows the order."""
    kept = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    try:
        return _asked(ctypes.CDLL("libcuda.so.1")) or ("", kept)
    except (OSError, AttributeError):
        return "", kept


def _asked(cuda: ctypes.CDLL) -> tuple[str, str] | None:
    device, bus = ctypes.c_int(), ctypes.create_string_buffer(32)
    whole, share = ctypes.create_string_buffer(16), ctypes.create_string_buffer(16)
    answers = (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDeviceGetPCIBusId(bus, 32, device),
        cuda.cuDeviceGetUuid(whole, device),
        cuda.cuDeviceGetUuid_v2(share, device),
    )
    if any(answers):
        return None
    kind = "GPU" if whole.raw == share.raw else "MIG"
    return bus.value.decode(), f"{kind}-{uuid.UUID(bytes=share.raw)}"


# What a cage shows of the file system, read-only and each at its own place, and what it hides within that.

PACKAGE = Path(__file__).resolve().parents[2]  # grader
MODULES = ("__init__.py", "version.py", "errors.py", "protocol", "worker")  # all of it that a worker imports

# Programs, libraries and headers of an installation. Not `share`, `etc` or `var`: the exchange of nbgrader, for one,
# lies in /usr/local/share.
_PARTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "include", "nvvm", "targets", "pyvenv.cfg")
_CONDA_PARTS = "*-conda-linux-gnu"  # its compilers' headers
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
_CPUS = Path("/sys/devices/system/cpu")  # how many there are; torch complains without


def import_folders() -> list[str]:
    """Where a process of ours finds `grader` and what PYTHONPATH adds: `-I` keeps Python from reading that itself."""
    return list(dict.fromkeys(map(str, [PACKAGE.parent, *_python_path()])))


def added_folders() -> list[Path]:
    """The folders of PYTHONPATH that a cage shows: none of this project's, and none that the home lies in."""
    home = _home()
    return [path for path in _python_path() if not (_in_checkout(path) or home.is_relative_to(path))]


def shown(gpu: GpuAccess | None) -> list[Path]:
    """Files and folders that may be read, parents first, with what is linked to.

    None lies in another unless something between is hidden.
    """
    compilers = [shutil.which(os.environ.get(variable) or name) for variable, name in (("CC", "gcc"), ("CXX", "g++"))]
    prefixes = [Path("/"), Path("/usr"), Path("/usr/local"), *_python(), *(_prefix(each) for each in compilers if each)]
    if gpu is not None and gpu.toolkit is not None:
        prefixes += [gpu.toolkit, gpu.toolkit.resolve()]
    wanted = [part for prefix in prefixes for part in _parts(prefix)] + [Path("/etc", name) for name in _ETC]
    if gpu is not None:
        wanted += [Path("/sys"), Path("/usr/local/nvidia"), *map(Path, glob("/usr/local/cuda*"))]
    else:
        wanted.append(_CPUS)
    libraries = [Path(path) for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path.startswith("/")]
    home = _home()
    wanted += added_folders() + [path for path in libraries if not home.is_relative_to(path.resolve())]
    wanted += [path.resolve() for path in wanted if path.is_symlink()]
    wanted = [path for path in wanted if os.path.exists(path)]
    secret = hidden_in(wanted)
    found: list[Path] = []
    for path in sorted(set(wanted), key=lambda path: (len(path.parts), path)):
        above = next((other for other in reversed(found) if path.is_relative_to(other)), None)
        if above is None or any(_between(above, each, path) for each in secret):
            found.append(path)
    return found


def hidden() -> list[Path]:
    """What is not shown even if it is inside something that is: this project, every installed grader, the home, and a
    course folder's own exercises."""
    places = [*site.getsitepackages(), *sys.path]
    installed = [Path(place, PACKAGE.name).resolve() for place in places if place]
    secret = [PACKAGE, *(path for path in installed if (path / "judge").is_dir()), _home()]
    if _in_checkout(PACKAGE):
        secret.append(PACKAGE.parent)
    if (own := found.folder()) is not None:
        secret.append(own.resolve())
    return list(dict.fromkeys(secret))


def hidden_in(shown: Iterable[Path]) -> list[Path]:
    """What is hidden within these, under the names that it has there: a prefix may be a link to another place."""
    found: list[Path] = []
    secret = hidden()
    for path in shown:
        real = path.resolve()
        found += [path / each.relative_to(real) for each in secret if each != real and each.is_relative_to(real)]
    return list(dict.fromkeys(found))


def telling(shown: Iterable[Path]) -> list[Path]:
    """The files that an installation of ours has within these, and that say where it came from."""
    places = {Path(place).resolve() for place in (*site.getsitepackages(), *sys.path) if place}
    editable = [f"{folder}__editable__{rest}*" for folder in ("", "__pycache__/") for rest in (".grader-", "_grader_")]
    names = ["grader-*.dist-info/direct_url.json", *editable]
    found = {file for place in places for name in names for file in place.glob(name)}
    return sorted(path / file.relative_to(real) for path in shown for real in [path.resolve()] for file in found
                  if file.is_relative_to(real) and not path.is_symlink())  # fmt: skip


def within(path: str, shown: Iterable[Path]) -> bool:
    """Whether a path is one of what is shown, or lies in it."""
    return any(Path(path).is_relative_to(each) or Path(path).resolve().is_relative_to(each) for each in shown)


def _home() -> Path:
    return Path(os.path.expanduser("~")).resolve()  # a user without a home has one that is nowhere


def _python_path() -> list[Path]:
    return [Path(path).resolve() for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _in_checkout(path: Path) -> bool:
    """Whether it belongs to the source tree that this package runs from; installed, it runs from none."""
    return path.is_relative_to(PACKAGE.parent) and (PACKAGE.parent / "pyproject.toml").is_file()


def _between(above: Path, middle: Path, below: Path) -> bool:
    return middle.is_relative_to(above) and below.is_relative_to(middle)


def _prefix(program: str) -> Path:
    return Path(program).resolve().parent.parent


def _python() -> list[Path]:
    """The prefixes of this Python: those that it names, and each that the link to its program passes through."""
    prefixes = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.base_prefix).resolve(), Path(sys.exec_prefix)]
    program = Path(sys.executable)
    for _ in range(10):
        prefixes += [program.parent.parent] if program.parent.name == "bin" else []
        if not program.is_symlink():
            break
        program = Path(os.path.normpath(program.parent / os.readlink(program)))
    return prefixes


def _parts(prefix: Path) -> list[Path]:
    return [path for name in _PARTS if os.path.exists(path := prefix / name)] + sorted(prefix.glob(_CONDA_PARTS))
