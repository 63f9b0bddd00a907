"""Without a GPU, the simulator knows which tensors would be on it: mixing them with the CPU's fails as on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
_START = """
import ctypes, json, linecache, sys
from grader.worker.simulator import start
start.prepare()
import numpy as np
import torch
from grader.worker.simulator import devices, lacks, torch_gpu, triton_gpu, triton_log
start.install()
for _ in range(2):
    triton_gpu.install()
    triton_log.watch()
    devices.install()
    torch_gpu.install()
given = torch.arange(6.0).reshape(2, 3)
space = {"x": given, "torch": torch, "np": np, "ctypes": ctypes, "devices": devices}
found = {}
for number, source in enumerate(json.load(sys.stdin)):
    linecache.cache["submission.py"] = len(source), None, source.splitlines(True), "submission.py"
    with devices.watching(given):
        try:
            exec(compile(source, "submission.py", "exec"), space)
            found[number] = "right"
        except Exception as error:
            found[number] = lacks.said_by(error) or lacks.said_in(str(error)) or f"{type(error).__name__}: {error}"
print(json.dumps(list(found.values())))
"""
_RIGHT = [
    'assert x.device == torch.device("cuda", 0) and x.is_cuda and x.device.type == "cuda"',
    "x + torch.zeros(3, device=x.device)",
    'x + torch.zeros(3, device="cuda")',
    "x + torch.zeros_like(x)[0].flip(0)",
    "x + torch.tensor(2.0)",
    "x * torch.tensor(2.0)[None].cuda()",
    "torch.ones(3).to(x.device) + x",
    "torch.ones(3).to(x) + x.new_zeros(3)",
    "x.copy_(torch.ones(2, 3))",
    "x[torch.tensor([0, 1])]",
    "x[0] = torch.ones(3)",
    "a = x.cpu(); a += 5; assert a is not x and not bool((x > 4.5).all()) and not a.is_cuda",
    "assert isinstance(x.cpu().numpy(), np.ndarray)",
    "torch.ones(2) + torch.arange(2)",
    'd = "cuda" if x.is_cuda else "cpu"; torch.empty(3, device=d) + x',
    "from triton.runtime import driver; x + torch.ones(3, device=driver.active.get_active_torch_device())",
    "with torch.cuda.device(x.device): x + 1",
    "out = torch.empty_like(x); torch.add(x, 1, out=out)",
    "b = (ctypes.c_char * 8)(); ctypes.memset(ctypes.addressof(b), 1, 8)",
    "x + torch.zeros(3, device=x.get_device()) + torch.ones(3).to(0)",
    "assert torch.ones(3).get_device() == -1",
    "assert not x.is_cpu and torch.ones(3).is_cpu",
    "torch.ones(3, 1).expand_as(x[:, :1].new_empty(3, 2)); x.view_as(torch.ones(2, 3))",
    "a = x.new_ones(3); torch.zeros(3, out=a); torch.empty(3, out=a); assert not bool(a.any())",
    "assert ctypes.string_at(b'abc', size=2) == b'ab'",
    "torch.nn.functional.softmax(x, dim=1).to(torch.float16).float() @ x.T.contiguous()",
]
_RIGHT_OF_TORCH = [
    "p = torch.ones(3).pin_memory(); assert p.is_pinned(); x + p.to(x.device, non_blocking=True)",
    "p = torch.ones(3, pin_memory=True); assert p.is_pinned() and not torch.ones(3).is_pinned(); x + p.cuda()",
    'g = torch.Generator("cuda").manual_seed(0); x + torch.randn(3, generator=g, device="cuda")',
    "g = torch.Generator(device=x.device); x + torch.rand(3, device=g.device, generator=g)",
    "assert torch.equal(torch.rand(3, generator=torch.Generator().manual_seed(1)), "
    "torch.rand(3, generator=torch.Generator('cpu').manual_seed(1)))",
    "a, b = (torch.cuda.Event(enable_timing=True) for _ in 'ab'); a.record(); b.record(torch.cuda.current_stream()); "
    "torch.cuda.synchronize(x.device); assert a.elapsed_time(b) >= 0",
    "s = torch.cuda.current_stream(); s.wait_stream(torch.cuda.default_stream()); x.record_stream(s)",
    "with torch.cuda.stream(torch.cuda.current_stream()): x + 1",
    "torch.cuda.empty_cache(); torch.cuda.set_device(torch.cuda.current_device()); torch.cuda.init()",
    "torch.cuda.reset_peak_memory_stats(); assert torch.cuda.max_memory_allocated() < torch.cuda.mem_get_info()[1]",
    "with torch.cuda.device_of(x), torch.cuda.nvtx.range('r'): torch.cuda.nvtx.mark('m')",
    "x + torch.compile(lambda a: a + torch.zeros(3, device=a.device), dynamic=False)(x)",
    "@torch.compile(fullgraph=True)\ndef f(a): return torch.relu(a).sum(dim=1)\nf(x)",
    "torch.set_default_device('cuda'); x + torch.ones(3); torch.set_default_device(None); assert torch.ones(3).is_cpu",
    "with torch.device('cuda'): x + torch.ones(3)",
    "assert torch.accelerator.current_accelerator().type == 'cuda'; torch.accelerator.synchronize()",
    "assert torch.from_dlpack(x).equal(x)",
    "torch.nn.Linear(3, 3).to(x.device)(x) + torch.nn.Linear(3, 3, device=x.device)(x)",
    "import triton; assert triton.testing.do_bench(lambda: x + 1, warmup=1, rep=1) >= 0",
    "from triton.runtime import driver; assert driver.active.is_active() and driver.active.get_benchmarker()",
    "p = torch.cuda.get_device_properties(x.device); assert p.multi_processor_count == 132 and p.name",
]
_TWO = "RuntimeError: Expected all tensors to be on the same device"
_WRONG = [
    ("x + torch.zeros(3)", _TWO),
    ("h = torch.ones(3) * 2; x + h", _TWO),
    ("x.add_(torch.zeros(2, 3))", _TWO),
    ("torch.where(torch.ones(3, dtype=torch.bool), x, x)", _TWO),
    ("torch.addmm(torch.zeros(2), x, x.T)", _TWO),
    ("x == torch.ones(3)", _TWO),
    ("torch.cat([x, torch.zeros(2, 3)])", _TWO),
    ("x + torch.from_numpy(np.ones(3))", _TWO),
    ('x @ torch.ones(3, 2, device="cpu")', _TWO),
    ("x.cpu() + x", _TWO),
    ("x.numpy()", "TypeError: can't convert cuda:0 device type tensor to numpy"),
    ("(x + 1).numpy()", "TypeError: can't convert cuda:0 device type tensor to numpy"),
    ("np.asarray(x)", "TypeError: can't convert cuda:0 device type tensor to numpy"),
    ("np.from_dlpack(x)", "BufferError: Unsupported device"),
    ("ctypes.memmove(x.data_ptr(), x.data_ptr(), 4)", "SegmentationFault: `ctypes.memmove`"),
    ("ctypes.string_at(x[1].data_ptr(), 4)", "SegmentationFault: `ctypes.string_at`"),
    ("x.pin_memory()", "RuntimeError: cannot pin 'torch.cuda.FloatTensor'"),
    ("torch.cuda.get_device_properties(0).multi_procesor_count", "AttributeError: torch.cuda.get_device_properties"),
    ("x + torch.ones(3).pin_memory()", _TWO),
    ("with torch.device('cuda'): torch.ones(3) + torch.ones(3, device='cpu')", _TWO),
]
_NOT_HERE = {
    "torch.cuda.Stream()": "`torch.cuda.Stream`",
    "torch.cuda.CUDAGraph()": "`torch.cuda.CUDAGraph`",
    "torch.cuda.FloatTensor(3)": "`torch.cuda.FloatTensor`",
    "x.__cuda_array_interface__": "`__cuda_array_interface__`",
    "torch.ones(3).type('torch.cuda.FloatTensor')": "GPU for this call of torch",
    "torch.cuda.get_device_properties(0).uuid": "`torch.cuda.get_device_properties(…).uuid`",
    "import triton; triton.runtime.driver.active.utils.load_binary": "`triton.runtime.driver.active.utils.load_binary`",
    "assert torch.cuda.is_available(), 'a GPU'": "GPU, so `torch.cuda.is_available()` is false",
    "if not torch.cuda.is_available():\n    raise SystemError('a GPU')": "GPU, so `torch.cuda.is_available()` is false",
}
_NOT_HERE_FOR_CUDA = {  # a torch that is built for CUDA looks for the driver first
    "torch.cuda.CUDAGraph()": "GPU for this call of torch",
    "torch.cuda.FloatTensor(3)": "GPU for a tensor on `cuda`",
}


_OPERATOR = """
def right(x: torch.Tensor) -> torch.Tensor:
    return x + 1
def wrong(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("the wrong kernel")
"""
_REGISTERED = {
    "custom_op": """
op = torch.library.custom_op("tests_{0}::op", {1}, mutates_args=(), device_types="cuda")
op.register_kernel("cpu")({2})
""",
    "custom_op_for_all": """
op = torch.library.custom_op("tests_{0}::op", {1}, mutates_args=())
torch.library.register_kernel("tests_{0}::op", "cpu", {2})
""",
    "cpu_first": """
op = torch.library.custom_op("tests_{0}::op", {2}, mutates_args=(), device_types="cpu")
op.register_kernel("cuda")({1})
""",
    "library": """
library = torch.library.Library("tests_{0}", "FRAGMENT")
library.define("op(Tensor x) -> Tensor")
library.impl("op", {1}, "CUDA")
library.impl("op", {2}, "CPU")
op = torch.ops.tests_{0}.op
""",
}


def registered(way: str, on_gpu: str) -> str:
    """Return a program that registers two kernels and calls the operator; `on_gpu` is right or wrong."""
    kernels = (on_gpu, "wrong" if on_gpu == "right" else "right")
    return _OPERATOR + _REGISTERED[way].format(f"{way}_{on_gpu}", *kernels) + "assert (op(x) == x + 1).all()"


_QUESTIONS = ["torch.cuda.is_available()", "torch.accelerator.is_available()", "torch.cuda.device_count()"]


def chosen(question: str) -> str:
    """Return a line that names the CPU after a question; the comment keeps the lines apart."""
    return f"x + torch.zeros(3, device='cpu')  # {question}"


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """Return the outcome of each line. All run in one process, because each process imports torch."""
    import json

    after = [line for question in _QUESTIONS for line in ("devices._asks[0] = False", question, chosen(question))]
    operators = [registered(way, on_gpu) for way in _REGISTERED for on_gpu in ("right", "wrong")]
    lines = [*_RIGHT, *_RIGHT_OF_TORCH, *(line for line, _ in _WRONG), *operators, *after, *_NOT_HERE]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done: Any = subprocess.run(
        [sys.executable, "-c", _START], input=json.dumps(lines), env=environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(lines, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("line", [*_RIGHT, *_RIGHT_OF_TORCH])
def test_what_a_gpu_takes_is_taken(outcomes: dict[str, str], line: str) -> None:
    """Tensors of the GPU, numbers in tensors of the CPU, copies between the two, and what torch has for a GPU."""
    assert outcomes[line] == "right"


@pytest.mark.parametrize(("line", "what"), _NOT_HERE.items())
def test_what_only_a_gpu_has_is_not_judged_here(outcomes: dict[str, Any], line: str, what: str) -> None:
    """The sentence names it, and blames nobody."""
    named = [f"The simulator has no {each}; on a GPU it" for each in (what, _NOT_HERE_FOR_CUDA.get(line, what))]
    assert outcomes[line][0].startswith(tuple(named))


@pytest.mark.parametrize(("line", "says"), _WRONG)
def test_what_a_gpu_refuses_is_refused_in_its_words(outcomes: dict[str, str], line: str, says: str) -> None:
    """Tensors of two devices, and functions of the CPU that get a GPU's memory."""
    assert outcomes[line].startswith(says)


@pytest.mark.parametrize("question", _QUESTIONS)
def test_a_device_chosen_by_what_is_there_is_no_mistake(outcomes: dict[str, str], question: str) -> None:
    """A submission that asked whether there is a GPU may name the CPU: on a GPU it would not."""
    assert (outcomes[question], outcomes[chosen(question)]) == ("right", "right")


@pytest.mark.parametrize("way", _REGISTERED)
def test_an_operators_kernel_for_cuda_is_the_one_that_runs(outcomes: dict[str, str], way: str) -> None:
    """A kernel for the CPU may be registered as well: a GPU's tensors do not reach it."""
    assert outcomes[registered(way, "right")] == "right"
    assert outcomes[registered(way, "wrong")] == "ValueError: the wrong kernel"
