"""The GPU, and what of torch, CuPy and the CUDA compiler can use it."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from typing import Any

from grader.doctor.finding import Finding
from grader.doctor.packages import REINSTALL
from grader.hardware import CUDA_13_DRIVER, Gpu, cuda_home, cuda_version, extra

__all__ = ["ask_torch", "cuda_compiler", "cupy", "gpu", "simulated", "torch_runs"]


def gpu(found: tuple[Gpu, ...]) -> Finding:
    """No GPU is no lack: the course says what it cannot show."""
    if not found:
        return Finding("GPU", True, "none: correctness is checked in simulators, speed is not measured")
    first = found[0]
    facts = [first.name]
    facts += [f"{first.memory_mib / 1024:.0f} GiB"] if first.memory_mib else []
    facts += [f"compute capability {first.compute_capability}"] if first.compute_capability else []
    facts += [f"driver {first.driver}"] if first.driver else []
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return Finding("GPU", True, ", ".join(facts) + more)


def ask_torch(*, cuda: bool) -> dict[str, Any]:
    """What torch says of itself, asked in a process of its own; `error` is there where it does not import or run."""
    code = _ASK_TORCH_CUDA if cuda else _ASK_TORCH
    try:
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return {"error": "importing it took more than three minutes"}
    if answer.returncode == 0:
        return dict(json.loads(answer.stdout.splitlines()[-1]))
    last = answer.stderr.strip().splitlines()[-1:] or [f"it ended with status {answer.returncode}"]
    return {"error": last[0]}


_ASK_TORCH = """
import json, torch
facts = {"version": torch.__version__, "cuda": torch.version.cuda, "works": False, "why": ""}
"""
_ASK_TORCH_CUDA = f"""{_ASK_TORCH}
try:
    facts["works"] = bool(torch.ones(2, device="cuda").sum().item() == 2)
except Exception as error:
    facts["why"] = str(error).splitlines()[0]
print(json.dumps(facts))
"""
_ASK_TORCH += "print(json.dumps(facts))\n"


def torch_runs(found: tuple[Gpu, ...], torch: dict[str, Any]) -> Finding:
    name = "torch on the GPU"
    if torch.get("error"):
        return Finding("torch runs", False, torch["error"], REINSTALL)
    if not found:
        return Finding("torch runs", True, "on the CPU")
    if torch["works"]:
        return Finding(name, True, f"works, built for CUDA {torch['cuda']}")
    if torch["cuda"] is None:
        return Finding(name, False, "this build of torch is for the CPU only", f"{REINSTALL} EXTRA={extra(found)}")
    if torch["cuda"].startswith("13") and extra(found) == "gpu-cu12":
        why = (
            f"CUDA {torch['cuda']} needs driver {CUDA_13_DRIVER} or newer and a card of compute capability 7.5 or newer"
        )
        return Finding(name, False, why, f"{REINSTALL} EXTRA=gpu-cu12")
    return Finding(name, False, torch["why"] or "torch does not find it", "nvidia-smi")


def cupy(found: tuple[Gpu, ...]) -> Finding:
    for distribution in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        try:
            return Finding("CuPy", True, f"{importlib.metadata.version(distribution)} ({distribution})", needed=False)
        except importlib.metadata.PackageNotFoundError:
            continue
    if not found:
        return Finding("CuPy", True, "not installed; it needs a GPU", needed=False)
    return Finding("CuPy", False, "not installed", f"rm -f .venv/.lab && make lab EXTRA={extra(found)}", needed=False)


def cuda_compiler(found: tuple[Gpu, ...], torch: dict[str, Any]) -> Finding:
    name = "CUDA compiler"
    built_for = str(torch.get("cuda") or "")
    home = cuda_home(int(built_for.split(".")[0]) if built_for else None)
    if home is None:
        if not found:
            return Finding(name, True, "none; CUDA C++ runs on the CPU here", needed=False)
        if extra(found) == "gpu-cu12":
            return Finding(
                name, False, "no nvcc found, and pip has none of CUDA 12", "sudo apt-get install nvidia-cuda-toolkit"
            )
        return Finding(name, False, "no nvcc found", "rm -f .venv/.lab && make lab EXTRA=gpu")
    version = cuda_version(home)
    value = f"nvcc of CUDA {version or '?'} in {home}"
    if found and built_for and version.split(".")[0] != built_for.split(".")[0]:
        return Finding(
            name, False, f"{value}, and torch is built for CUDA {built_for}", "rm -f .venv/.lab && make lab EXTRA=gpu"
        )
    return Finding(name, True, value)


def simulated(found: tuple[Gpu, ...], torch: dict[str, Any]) -> Finding:
    if found and torch.get("works"):
        return Finding("simulated", True, "nothing")
    return Finding(
        "simulated", True, "Triton by its interpreter, CUDA C++ on the CPU; speed gates say that they need a GPU"
    )
