"""The files that a sandbox shows, read-only and at their usual paths, the folders it hides, and its GPU."""

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

# The one GPU that a worker may use.

_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/dxg")  # the last is WSL's
_MIG = "/dev/nvidia-caps"


@dataclass(frozen=True)
class GpuAccess:
    """Device nodes, the value of CUDA_VISIBLE_DEVICES that selects them, and the CUDA toolkit."""

    nodes: tuple[str, ...] = ()
    visible: str = ""
    toolkit: Path | None = None


def gpu_access(device: str) -> GpuAccess | None:
    """For "cuda": device 0 in this process's environment; for "simulator": None."""
    return GpuAccess(*_nodes(), cuda_home(torch_cuda())) if device == "cuda" else None


@functools.cache
def _nodes() -> tuple[tuple[str, ...], str]:
    """The GPU's device nodes and its name. Without NVML: the nodes of every GPU."""
    bus, visible = _device_0()
    shared = [path for path in _SHARED if os.path.exists(path)]
    own = sorted(glob("/dev/nvidia[0-9]*"))
    with contextlib.suppress(Exception):  # NVML is missing or does not know this GPU
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        node = f"/dev/nvidia{nvml.nvmlDeviceGetMinorNumber(nvml.nvmlDeviceGetHandleByPciBusId(bus))}"
        own = [node] if node in own else own
    if visible.startswith("MIG-") and os.path.exists(_MIG):
        shared.append(_MIG)
    return (*own, *shared), visible


def _device_0() -> tuple[str, str]:
    """The PCI bus id of CUDA's device 0, and its name "GPU-…", or "MIG-…" for a share of a GPU, from the driver."""
    kept = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    try:
        return _driver_names(ctypes.CDLL("libcuda.so.1")) or ("", kept)
    except (OSError, AttributeError):
        return "", kept


def _driver_names(cuda: ctypes.CDLL) -> tuple[str, str] | None:
    device, bus = ctypes.c_int(), ctypes.create_string_buffer(32)
    whole, share = ctypes.create_string_buffer(16), ctypes.create_string_buffer(16)
    errors = (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDeviceGetPCIBusId(bus, 32, device),
        cuda.cuDeviceGetUuid(whole, device),
        cuda.cuDeviceGetUuid_v2(share, device),
    )
    if any(errors):
        return None
    kind = "GPU" if whole.raw == share.raw else "MIG"
    return bus.value.decode(), f"{kind}-{uuid.UUID(bytes=share.raw)}"


# Files.

PACKAGE = Path(__file__).resolve().parents[2]  # grader
MODULES = (
    "__init__.py",
    "version.py",
    "errors.py",
    "words.py",
    "protocol",
    "worker",
)  # the parts that a worker imports

# Programs, libraries and headers of an installation. Not `share`, `etc` or `var`: nbgrader's exchange, for example, is
# in /usr/local/share.
_PARTS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "include", "nvvm", "targets", "pyvenv.cfg")
_CONDA_PARTS = "*-conda-linux-gnu"  # headers of conda's compilers
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
_CPUS = Path("/sys/devices/system/cpu")  # torch warns if it cannot count the cores


def import_folders() -> list[str]:
    """The folders of `grader` and of PYTHONPATH, for a trusted process under `python -I`, which ignores PYTHONPATH."""
    return list(dict.fromkeys(map(str, [PACKAGE.parent, *_python_path()])))


def added_folders() -> list[Path]:
    """The folders of PYTHONPATH that a sandbox shows: none of this project, and none that contains the home."""
    home = _home()
    return [path for path in _python_path() if not (_in_checkout(path) or home.is_relative_to(path))]


def shown(gpu: GpuAccess | None) -> list[Path]:
    """The readable files and folders, parents first, with the targets of links.

    A path inside another is listed only if a hidden folder is between the two.
    """
    compilers = [shutil.which(os.environ.get(variable) or name) for variable, name in (("CC", "gcc"), ("CXX", "g++"))]
    prefixes = [
        Path("/"),
        Path("/usr"),
        Path("/usr/local"),
        *_python(),
        *(Path(each).resolve().parents[1] for each in compilers if each),
    ]
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
        if above is None or any(each.is_relative_to(above) and path.is_relative_to(each) for each in secret):
            found.append(path)
    return found


def hidden() -> list[Path]:
    """Folders hidden even inside a visible one: this project, any installed grader, the home, a course's exercises."""
    places = [*site.getsitepackages(), *sys.path]
    installed = [Path(place, PACKAGE.name).resolve() for place in places if place]
    secret = [PACKAGE, *(path for path in installed if (path / "judge").is_dir()), _home()]
    if _in_checkout(PACKAGE):
        secret.append(PACKAGE.parent)
    if (own := found.folder()) is not None:
        secret.append(own.resolve())
    return list(dict.fromkeys(secret))


def hidden_in(shown: Iterable[Path]) -> list[Path]:
    """The hidden folders inside these paths, as paths below them: a prefix may be a link to another place."""
    found: list[Path] = []
    secret = hidden()
    for path in shown:
        real = path.resolve()
        found += [path / each.relative_to(real) for each in secret if each != real and each.is_relative_to(real)]
    return list(dict.fromkeys(found))


def origin_files(shown: Iterable[Path]) -> list[Path]:
    """The files inside these paths in which pip records where the grader was installed from."""
    places = {Path(place).resolve() for place in (*site.getsitepackages(), *sys.path) if place}
    editable = [
        f"{folder}__editable__{rest}*" for folder in ("", "__pycache__/") for rest in (".gpu_course-", "_gpu_course_")
    ]
    names = ["gpu_course-*.dist-info/direct_url.json", *editable]
    found = {file for place in places for name in names for file in place.glob(name)}
    roots = [(path, path.resolve()) for path in shown if not path.is_symlink()]
    return sorted(path / file.relative_to(root) for path, root in roots for file in found if file.is_relative_to(root))


def within(path: str, shown: Iterable[Path]) -> bool:
    """Whether a path is one of these, or inside one."""
    return any(Path(path).is_relative_to(each) or Path(path).resolve().is_relative_to(each) for each in shown)


def _home() -> Path:
    return Path(os.path.expanduser("~")).resolve()  # for a user without a home, a path that does not exist


def _python_path() -> list[Path]:
    return [Path(path).resolve() for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _in_checkout(path: Path) -> bool:
    """Whether a path is in the source tree that this package runs from, if it runs from one."""
    return path.is_relative_to(PACKAGE.parent) and (PACKAGE.parent / "pyproject.toml").is_file()


def _python() -> list[Path]:
    """The prefixes of this Python, and those of every link on the way to its program."""
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
