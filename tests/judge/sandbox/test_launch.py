"""The choice of the sandbox, its description, and the environment inside."""

import os
import sys

import pytest

from grader.errors import MachineLacks
from grader.judge.sandbox import launch, must_be_caged, sight, start, strength
from grader.judge.sandbox.sight import GpuAccess


@pytest.fixture(autouse=True)
def undecided():
    """The choice is made once per process; these tests repeat it."""
    launch.decided.cache_clear()
    yield
    launch.decided.cache_clear()


def test_without_bubblewrap_there_is_none_and_a_class_is_refused(no_programs):
    """The message gives the reason and the next step."""
    no_programs("bwrap")
    assert strength() == "none: bubblewrap is not installed"
    with pytest.raises(MachineLacks, match=r"there is none here: bubblewrap is not installed\. `grader doctor`"):
        must_be_caged()


def test_with_bubblewrap_a_class_is_graded():
    """This holds even if a protection is missing."""
    if not strength().startswith("bubblewrap"):
        pytest.skip("this machine has no bubblewrap")
    must_be_caged()


def test_a_bubblewrap_that_is_refused_its_namespaces_is_not_used(tmp_path, monkeypatch):
    """An installed bubblewrap may still be forbidden to work."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert strength() == "none: bubblewrap may not create namespaces here"


def test_no_sandbox_is_none_and_the_verdict_says_so():
    """The option --no-sandbox requests it."""
    assert strength(False) == "none: --no-sandbox was given"
    caged = start("import os; print(os.getuid())", (), "simulator", False)
    assert caged.process.stdout.read().split() == [str(os.getuid()).encode()]
    caged.kill()
    caged.process.stdout.close()


def test_the_choice_is_tried_once(monkeypatch):
    """Otherwise each start would repeat the trial."""
    tried = []
    monkeypatch.setattr(launch, "works", lambda form: tried.append(form) or True)
    assert strength() == strength()
    assert len(tried) == 1


@pytest.mark.parametrize("form", ["bubblewrap", "none"])
def test_its_environment_is_its_own(form, told, monkeypatch):
    """It has only the paths of compilers from the caller, caches in its home, bounded thread pools, and no GPU."""
    monkeypatch.setenv("GRADEBOOK_PASSWORD", "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("LD_PRELOAD", "")
    found = told(form, "tell(variables=lambda: dict(os.environ), here=os.getcwd, path=lambda: sys.path)")
    variables = found["variables"]
    home = variables["HOME"]
    folders = ["TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR"]
    folders += ["NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH"]
    assert found["here"] == home != os.environ["HOME"]
    assert all(variables[name].startswith(f"{home}/") for name in folders)
    assert "secret" not in variables.values()
    assert "LD_PRELOAD" not in variables
    assert variables["CUDA_VISIBLE_DEVICES"] == ""
    assert variables["PYTHONDONTWRITEBYTECODE"] == "1"
    assert 1 <= int(variables["OMP_NUM_THREADS"]) <= 8
    assert "" not in found["path"]
    assert variables["PATH"].split(os.pathsep)[0] == os.path.dirname(sys.executable)


def test_the_environment_names_the_gpu_and_its_toolkit(monkeypatch, tmp_path):
    """The GPU has CUDA's name; a toolkit from the caller's environment is kept."""
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    found = launch.environment("/home/worker", GpuAccess(("/dev/nvidia3",), "GPU-1", tmp_path))
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_HOME"]) == ("GPU-1", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    assert launch.environment("/home/worker", GpuAccess(toolkit=tmp_path))["CUDA_HOME"] == "/opt/cuda"


@pytest.mark.parametrize(
    ("minor", "visible", "wanted"),
    [
        (3, "GPU-1", ("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")),
        (3, "MIG-1", ("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps")),
        (None, "0", ("/dev/nvidia0", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")),
    ],
)
def test_the_nodes_are_those_of_one_gpu(minor, visible, wanted, monkeypatch):
    """They belong to CUDA's first GPU, or to every GPU if NVML does not know that one."""

    class Nvml:
        def nvmlInit(self):
            assert minor is not None

        def nvmlDeviceGetHandleByPciBusId(self, bus):
            return bus

        def nvmlDeviceGetMinorNumber(self, handle):
            return {"0000:19:00.0": minor}[handle]

    there = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps"}
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    monkeypatch.setattr(sight, "_device_0", lambda: ("0000:19:00.0", visible))
    monkeypatch.setattr(sight, "glob", lambda pattern: ["/dev/nvidia3", "/dev/nvidia0"])
    monkeypatch.setattr(sight.os.path, "exists", there.__contains__)
    sight._nodes.cache_clear()
    try:
        assert sight._nodes() == (wanted, visible)
    finally:
        sight._nodes.cache_clear()
    assert sight.gpu_access("simulator") is None
