"""The simulator's headers are built once for a judge, and a submission cannot change them."""

import threading
from pathlib import Path

import pytest

from grader.judge.sandbox import launch, prebuilt
from grader.protocol.target import PREBUILT


def test_they_are_built_for_cuda_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first submission with CUDA C++ has them built, and no other."""
    runs: list[str] = []
    monkeypatch.setattr(prebuilt, "_build", lambda folder: runs.append(str(folder)))
    monkeypatch.setattr(prebuilt, "_begun", threading.Event())
    monkeypatch.setattr(prebuilt, "_made", [])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for source, count in (("@triton.jit", 0), ("load_inline(...)", 1), ("cp.RawKernel(...)", 1)):
        prebuilt.build_headers_for(source)
        for thread in threading.enumerate():
            if thread.name == "headers":
                thread.join()
        assert len(runs) == len(list(tmp_path.iterdir())) == count


def test_a_worker_can_read_them_and_not_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a sandbox."""
    monkeypatch.setattr(prebuilt, "folder", lambda: tmp_path)
    (tmp_path / "cuda_on_cpu.h.gch").touch()
    assert prebuilt.files() == {}, "the object is written last"
    (tmp_path / "cuda_on_cpu.o").touch()
    code = f"""
import os, pathlib
folder = pathlib.Path(os.environ[{PREBUILT!r}])
print(sorted(path.name for path in folder.iterdir()))
try:
    (folder / "cuda_on_cpu.o").write_bytes(b"")
except OSError:
    print("refused")
"""
    caged = launch.start(code, (), "simulator", sandbox=True)
    assert caged.process.stdout is not None
    with caged.process.stdout as printed:
        assert printed.read() == b"['cuda_on_cpu.h.gch', 'cuda_on_cpu.o']\nrefused\n"
    caged.kill()
