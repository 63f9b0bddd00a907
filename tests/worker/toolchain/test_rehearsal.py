"""A rehearsal leaves kernels in Triton's cache and nothing else. The compiler needs no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SUBMISSION = """
import torch, triton, triton.language as tl

calls, kept, says = 0, None, print

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

tuned_kernel = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])(add_kernel)

def add(x, y, out):
    global calls, kept
    calls, kept = calls + 1, torch.empty(4, device="cuda")
    says("a call")
    if x.numel() == 7:
        raise ValueError
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)

def tuned(x, y, out):
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())

def forever(x, y, out):
    while True:
        pass

def ends_itself(x, y, out):
    import os
    os._exit(3)

def builds(x, y, out):
    from torch.utils.cpp_extension import load_inline
    text = 'extern "C" int seven() { return 7; }'
    load_inline("seven", cpp_sources=text, no_implicit_headers=True, is_python_module=False)
    raise ValueError

def waits_with_a_lock(x, y, out):
    import os, pathlib, subprocess
    folder = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"], "a")
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    # ninja also gives each compiler its own process group
    compiler = subprocess.Popen(["sh", "-c", "echo $$ > pid; exec sleep 100"], process_group=0)
    if x.numel() == 9:
        while not pathlib.Path("pid").exists() or not pathlib.Path("pid").read_text():
            pass
        os._exit(3)
    compiler.wait()

def asks(x, y, out):
    BLOCK = torch.cuda.get_device_properties(x.device).multi_processor_count * 256
    assert triton.runtime.driver.active.utils.get_device_properties(0)["max_shared_mem"] == 1
    add_kernel[(1,)](x, y, out, x.numel(), BLOCK=BLOCK)
"""
_SCRIPT = """
import pathlib, sys, time, types
import submission
from triton.backends.compiler import GPUTarget
from grader.exercise import Array, Case
from grader.judge.checking.buffers import laid
from grader.worker.toolchain.rehearsal import _Driver, rehearse

def launcher(source, metadata):
    pathlib.Path(sys.argv[1], f"launcher of {source.name}").touch()

properties = types.SimpleNamespace(multi_processor_count=2)
GPU = _Driver(GPUTarget("cuda", 90, 32), properties, {"max_shared_mem": 1}, launcher)

def binaries():
    return len(list(pathlib.Path(sys.argv[1]).glob("*/*.cubin")))

def rehearsed(name, sizes, limit_s=60.0, gpu=None):
    cases = [Case("", (Array("x", (n,)), Array("y", (n,)), Array("out", (n,), role="out"))) for n in sizes]
    launches = [list(laid(case, 1).launches[0].values()) for case in cases]
    begun = time.monotonic()
    rehearse(getattr(submission, name), launches, limit_s, gpu or GPU)
    print(binaries(), submission.calls, submission.kept, time.monotonic() - begun < 30)
"""


@pytest.fixture
def rehearsals(tmp_path):
    """Run lines of `rehearsed(function, sizes)` and return what each prints.

    That is the number of cached binaries, the submission's variables, and whether it took less than 30 s.
    """

    def run(*lines: str) -> list[str]:
        (tmp_path / "submission.py").write_text(_SUBMISSION)
        (tmp_path / "script.py").write_text(_SCRIPT + "\n".join(lines))
        cache = tmp_path / "cache"
        root = str(Path(__file__).resolve().parents[3])
        environment = {**os.environ, "TRITON_CACHE_DIR": str(cache), "PYTHONPATH": root}
        environment["TORCH_EXTENSIONS_DIR"] = str(tmp_path / "extensions")
        environment.pop("TRITON_INTERPRET", None)
        done = subprocess.run(
            [sys.executable, str(tmp_path / "script.py"), str(cache)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_what_triton_will_want_is_compiled_and_nothing_else_stays(rehearsals):
    """There is one binary per specialisation, and the function's other effects are gone."""
    once = 'rehearsed("add", [1000, 1, 7, 1024, 1040])'
    assert rehearsals(once, once) == ["3 0 None True"] * 2  # for 1000, 1, and the multiples of 16; 7 raises


def test_what_launches_a_kernel_is_compiled_too(rehearsals, tmp_path):
    """Triton 3.6 compiles a launcher at a kernel's first launch."""
    rehearsals('rehearsed("add", [1000])')
    assert (tmp_path / "cache" / "launcher of add_kernel").exists()


def test_an_autotuners_configurations_are_compiled_and_what_asks_for_the_gpu_is_answered(rehearsals):
    """There are two configurations, then one more kernel with a block that depends on the number of SMs."""
    assert rehearsals('rehearsed("tuned", [1000])', 'rehearsed("asks", [1000])') == ["2 0 None True", "3 0 None True"]


def test_what_does_not_end_is_ended_and_what_ends_itself_harms_nobody(rehearsals):
    """The forked process is waited for no longer than the limit."""
    assert rehearsals('rehearsed("forever", [8], 1.0)', 'rehearsed("ends_itself", [8])') == ["0 0 None True"] * 2


def test_an_extension_is_built(rehearsals, tmp_path):
    """It is where the first call looks for it."""
    assert rehearsals('rehearsed("builds", [8, 9])') == ["0 0 None True"]
    assert [path.name for path in tmp_path.glob("extensions/**/*.so")] == ["seven.so"]


@pytest.mark.parametrize(("elements", "limit_s"), [(8, 2.0), (9, 60.0)])
def test_a_build_that_is_cut_short_leaves_no_lock_and_no_compiler(rehearsals, tmp_path, elements, limit_s):
    """Otherwise the real call would wait for the lock forever, and two compilers would write one file."""
    assert rehearsals(f'rehearsed("waits_with_a_lock", [{elements}], {limit_s})') == ["0 0 None True"]
    assert (tmp_path / "extensions" / "a").is_dir()
    assert not [*tmp_path.glob("extensions/**/lock")]
    status = Path(f"/proc/{int((tmp_path / 'pid').read_text())}/status")
    assert not status.exists() or "zombie" in status.read_text()


@pytest.mark.gpu
def test_on_a_gpu_the_real_launches_compile_nothing_more(rehearsals):
    """The CUDA context survives the rehearsal, and the compiled kernels fit this GPU."""
    real = """
import torch
made = torch.ones(1040, device="cuda")
rehearsed("add", [1000, 1, 1040], gpu=_Driver.of_this_process())
before = sorted(pathlib.Path(sys.argv[1]).iterdir())
for n in (1000, 1, 1040):
    out = torch.empty(n, device="cuda")
    submission.add(made[:n], made[:n], out)
    assert bool((out == 2).all())
print(binaries(), submission.calls, sorted(pathlib.Path(sys.argv[1]).iterdir()) == before)
"""
    assert [line for line in rehearsals(real) if line != "a call"] == ["3 0 None True", "3 3 True"]
