"""Importing `grader` is cheap and lazy; in a notebook without a GPU it sets up the simulators first."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import grader
from grader.notebook import notebook_machine


def run(code: str, **environment: str) -> str:
    """The output of a fresh Python process."""
    import os

    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=kept | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_costs_nothing() -> None:
    """Importing the package and searching for a GPU do not load torch, matplotlib, IPython, jinja2 or SQLAlchemy."""
    heavy = "torch triton matplotlib IPython jinja2 sqlalchemy nbformat"
    code = f"import sys, grader; grader.device; grader.check; print([m for m in {heavy.split()!r} if m in sys.modules])"

    assert run(code) == "[]"


def test_outside_of_a_kernel_nothing_is_simulated() -> None:
    """An import does not turn a command, a test or the judge's own process into a simulator."""
    code = "import os, sys, ipykernel, grader; print(os.environ.get('TRITON_INTERPRET'), len(sys.meta_path))"

    assert run(code).startswith("None ")


_KERNEL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
object.__setattr__(shell, "kernel", object())
import ipykernel
"""


def test_in_a_kernel_without_a_gpu_the_simulators_are_ready() -> None:
    """Importing grader first is enough: Triton interprets, and `load_inline` builds for the CPU once it is imported."""
    code = _KERNEL + (
        "import os, grader\n"
        "print(grader.device, os.environ.get('TRITON_INTERPRET'), 'torch' in sys.modules)\n"
        "from torch.utils.cpp_extension import load_inline\n"
        "import triton\n"
        "print(hasattr(load_inline, '__wrapped__'), type(triton.jit(lambda: None)).__name__)\n"
        "print(any(type(finder).__module__ == 'grader.notebook.notebook_machine' for finder in sys.meta_path))\n"
    )

    assert run(code, CUDA_VISIBLE_DEVICES="").splitlines() == ["cpu 1 False", "True InterpretedFunction", "False"]


@pytest.mark.parametrize(("device", "simulated"), [("cuda", 0), ("cpu", 1)])
@pytest.mark.usefixtures("notebook")
def test_only_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, device: str, simulated: int) -> None:
    """On a GPU kernels run on the GPU."""
    called: list[bool] = []
    monkeypatch.setattr(notebook_machine, "device", lambda: device)
    monkeypatch.setattr(notebook_machine, "simulate", lambda: called.append(True))

    notebook_machine.simulate_in_notebook()

    assert len(called) == simulated


def test_triton_imported_too_early_gets_a_warning() -> None:
    """If triton was imported first, the warning says why kernels will not run, and what to do."""
    code = _KERNEL + (
        "import triton, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import grader\n"
        "print(caught[-1].message)\n"
    )

    assert "Restart the kernel and import grader first." in run(code, CUDA_VISIBLE_DEVICES="")


def test_load_inline_that_is_already_imported_is_patched() -> None:
    """The order of torch and grader does not matter for CUDA C++."""
    code = (
        "import torch.utils.cpp_extension as e\nfrom grader.notebook.notebook_machine import simulate\nsimulate()\n"
        "print(hasattr(e.load_inline, '__wrapped__'))"
    )

    assert run(code) == "True"


def test_a_missing_driver_is_not_said_in_red() -> None:
    """A torch that is built for CUDA logs it where it finds `nvcc`; its other warnings are shown."""
    code = (
        "import logging, sys\nfrom grader.notebook.notebook_machine import simulate\nsimulate()\n"
        "logging.basicConfig(stream=sys.stdout, format='%(message)s')\n"
        "logger = logging.getLogger('torch.utils.cpp_extension')\n"
        "logger.warning(\"No CUDA runtime is found, using CUDA_HOME='%s'\", '/usr')\nlogger.warning('Other')"
    )

    assert run(code) == "Other"


@pytest.mark.parametrize("first", ["import grader.leaderboard.board_actions", "pass"])
def test_leaderboard_is_a_function_and_a_package(first: str) -> None:
    """`leaderboard` is the old name of `standings`; both it and the package work in any order of imports."""
    code = (
        f"{first}\nfrom grader import leaderboard, standings\nimport grader.leaderboard.ranking as ranking\n"
        "print(ranking.__name__)\nleaderboard('softmax')\nprint('---')\nstandings('softmax')"
    )

    name, notice, *old = run(code).splitlines()
    assert name == "grader.leaderboard.ranking"
    assert notice == "`leaderboard(…)` is now `standings(…)`."
    assert old[: old.index("---")] == old[old.index("---") + 1 :] != []


def test_names() -> None:
    """Every announced name exists, and no other name does."""
    assert set(grader.__all__) <= set(dir(grader))
    assert all(hasattr(grader, name) for name in grader.__all__)
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        grader.chekc  # noqa: B018


def test_the_device_follows_torch_and_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's answer counts if torch is loaded; otherwise a GPU and a torch built for one are both needed."""
    monkeypatch.setattr(notebook_machine, "_gpus", lambda: ("a GPU",))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(notebook_machine, "torch_cuda", lambda: 13)
    assert notebook_machine.device() == "cuda"
    monkeypatch.setattr(notebook_machine, "torch_cuda", lambda: None)
    assert notebook_machine.device() == "cpu"

    torch = ModuleType("torch")
    torch.cuda = type("cuda", (), {"is_available": staticmethod(lambda: True)})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert notebook_machine.device() == "cuda"
