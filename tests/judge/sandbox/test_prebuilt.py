"""The simulator's headers are built once for a judge, and a submission cannot change them."""

import subprocess

import pytest

from grader.judge.sandbox import launch, prebuilt
from grader.protocol.target import PREBUILT


def test_they_are_built_for_cuda_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first submission with CUDA C++ has them built, and no other."""
    runs: list[object] = []
    monkeypatch.setattr(subprocess, "run", lambda *command, **_: runs.append(command))
    prebuilt._build.cache_clear()
    try:
        for source in ("@triton.jit", "load_inline(...)", "cp.RawKernel(...)"):
            prebuilt.build_headers_for(source)
    finally:
        prebuilt._build.cache_clear()
    assert len(runs) == 1


def test_a_worker_can_read_them_and_not_write() -> None:
    """In a sandbox."""
    code = f"""
import os, pathlib
folder = pathlib.Path(os.environ[{PREBUILT!r}])
print(sorted(path.name for path in folder.iterdir()))
try:
    (folder / "cuda_on_cpu.o").write_bytes(b"")
except OSError:
    print("refused")
"""
    (prebuilt.folder() / "cuda_on_cpu.o").touch()
    caged = launch.start(code, (), "simulator", sandbox=True)
    assert caged.process.stdout is not None
    with caged.process.stdout as printed:
        assert printed.read() == b"['cuda_on_cpu.o']\nrefused\n"
    caged.kill()
