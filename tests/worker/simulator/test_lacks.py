"""The simulator tells CUDA that it does not have from a learner's mistake."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from grader.feedback.sentences import explained
from grader.judge.process.claims import failure_of
from grader.verdict import Verdict
from grader.worker.failures import describe
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate
from grader.worker.simulator.lacks import lacking, said_by, said_in, sentence
from tests.forked import ForkingJudge

CUB = "#include <cub/cub.cuh>\n"
GROUPS = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
KERNEL = "__global__ void k(int* x, float* y) {{ {} }}"


def log_of(source: str, folder: Path) -> str:
    """The C++ compiler's output for CUDA C++."""
    path = folder / "kernel.cpp"
    path.write_text(f'#include "cuda_on_cpu.h"\n#line 1 "cell"\n{translate(source)}', encoding="utf-8")
    command = ["g++", "-fsyntax-only", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("#include <mma.h>", "header `mma.h`"),
        ("#include <curand_kernel.h>", "header `curand_kernel.h`"),
        ("#include <thrust/device_vector.h>", "header `thrust/device_vector.h`"),
        ("#include <cuda/atomic>", "header `cuda/atomic`"),
        (KERNEL.format("x[0] = __vadd4(x[1], x[2]);"), "`__vadd4`"),
        (KERNEL.format("y[0] = cyl_bessel_i0f(y[1]);"), "`cyl_bessel_i0f`"),
        ("__global__ void k(cudaTextureObject_t t) { tex2D<float>(t, 0, 0); }", "`cudaTextureObject_t`"),
        ("__global__ void __cluster_dims__(2, 1, 1) k(int* x) {}", "`__cluster_dims__`"),
        (f"{CUB}__global__ void k() {{ using L = cub::BlockLoad<int, 128, 4>; }}", "`BlockLoad`"),
        (f"{CUB}__global__ void k() {{ cub::DeviceReduce::Sum(); }}", "`DeviceReduce`"),
        (f"{GROUPS}__global__ void k() {{ cg::this_cluster().sync(); }}", "`this_cluster`"),
        (f"{GROUPS}__global__ void k() {{ cg::this_thread_block().barrier_arrive(); }}", "`barrier_arrive`"),
        ("#include <cuda.h>\nvoid f(CUfunction k) {}", "`CUfunction`"),
        ("void f(void* k) { cudaLaunchCooperativeKernel(k, 1, 1, nullptr, 0, 0); }", "`cudaLaunchCooperativeKernel`"),
    ],
)
def test_what_cuda_has_is_named(tmp_path: Path, source: str, what: str) -> None:
    """Headers, functions, types and attributes of CUDA."""
    assert lacking(log_of(source, tmp_path)) == what


@pytest.mark.parametrize(
    "source",
    [
        "#include <cuda_fp61.h>",
        "#include <cutlass/cutlass.h>",
        KERNEL.format("y[i] = 1;"),
        KERNEL.format("y[0] = __expff(y[1]);"),
        KERNEL.format("y[0] = __shfl_dwon_sync(~0u, y[0], 1);"),
        KERNEL.format("float4 v = make_float4(1, 2, 3, 4) y[0] = v.x;"),
        KERNEL.format("x[0] = __reduce_add_sync(~0u, x[0]) + z;"),
        f"{CUB}__global__ void k() {{ using R = cub::BlockRedoce<int, 128>; }}",
        f"{GROUPS}__global__ void k() {{ cg::this_thread_block().synk(); }}",
        f"{GROUPS}__global__ void k() {{ cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), 1, 2); }}",
        "__global__ void k(__half* x) {}",  # on a GPU it needs an #include, too
        "void f() { int* p; cudaMalock(&p, 4); }",
    ],
)
def test_a_learners_mistake_stays_one(tmp_path: Path, source: str) -> None:
    """Neither the simulator nor CUDA knows these; or both do, and the error is another one."""
    log = log_of(source, tmp_path)
    assert "error:" in log
    assert lacking(log) == ""


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("‘getStreamFromPool’ is not a member of ‘at::cuda’", "`getStreamFromPool`"),
        ("‘CUDAStreamGuard’ is not a member of ‘c10::cuda’; did you mean ‘CUDAStream’?", "`CUDAStreamGuard`"),
        ("‘struct c10::cuda::CUDAStream’ has no member named ‘device_index’", "`device_index`"),
        ("‘getCurrentCudaStreams’ is not a member of ‘at::cuda’", ""),
        ("‘struct c10::cuda::CUDAStream’ has no member named ‘querry’; did you mean ‘query’?", ""),
    ],
)
def test_what_torchs_headers_for_cuda_have_is_named(error: str, what: str) -> None:
    """Names that these headers do not have either stay a mistake."""
    assert lacking(f"main.cpp:3:1: error: {error}\n") == what


def test_the_sentence_is_found_in_an_error() -> None:
    """It may be a part of a traceback, and a kernel that ran names its line in it."""
    said = sentence("inline PTX (line 12)")
    assert said_in(f"RuntimeError: {said}\nand more") == (said, 12)
    assert said_in("The simulator has no time.") is None


@pytest.mark.parametrize(
    ("error", "tool"),
    [("Error building extension 'k': /bin/sh: 1: c++: not found", "`c++`"), ("g++: not found", "`g++`"),
     ("Ninja is required to load C++ extensions", "`ninja`")],
)  # fmt: skip
def test_a_missing_compiler_is_not_the_learners_mistake(error: str, tool: str, tmp_path: Path) -> None:
    """The work is not judged, and the report says what the machine lacks and how to get it."""
    claim = describe(RuntimeError(error), tmp_path / "submission.py")
    assert (claim["kind"], claim["line"]) == ("not_simulated", None)
    found = explained(failure_of(claim))
    assert f"This machine has no {tool}" in found.message
    assert (found.title, "grader doctor" in found.advice) == ("This machine has no compiler", True)


@pytest.mark.parametrize(
    ("place", "message", "what"),
    [
        ("torch/cuda/streams.py", "CUDA error: no CUDA-capable device is detected", "`torch.cuda.Stream`"),
        ("torch/cuda/streams.py", "CUDA error: CUDA driver version is insufficient", "`torch.cuda.Stream`"),
        ("torch/cuda/streams.py", "Cannot re-initialize CUDA in forked subprocess", "`torch.cuda.Stream`"),
        ("submission.py", '"cuda" is an NVIDIA driver library', "NVIDIA driver for `cuda.bindings`"),
        ("submission.py", "CUDA error: an illegal memory access", None),
    ],
)
def test_a_machine_without_a_driver_is_not_the_learners_mistake(
    monkeypatch: pytest.MonkeyPatch, place: str, message: str, what: str | None
) -> None:
    """PyTorch built for CUDA, and NVIDIA's own bindings, find no device or no driver."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    scope: dict[str, Any] = {"message": message}
    exec(compile("class Stream:\n    def __new__(cls): raise RuntimeError(message)", f"/x/{place}", "exec"), scope)
    with pytest.raises(RuntimeError) as raised:
        scope["Stream"]()
    assert said_by(raised.value) == (None if what is None else (sentence(what), None))


SOURCE = """
import ctypes
from functools import cache
from torch.utils.cpp_extension import load_inline

cuda_source = r'''
HEADER
__global__ void square(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        BODY
    }
}
extern "C" void launch(const float* x, float* out, int n) { square<<<(n + 255) / 256, 256>>>(x, out, n); }
'''


@cache
def library():
    built = ctypes.CDLL(load_inline("square_lacks", "", cuda_source, no_implicit_headers=True, is_python_module=False))
    built.launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return built


def square_matrix(x, out):
    library().launch(x.data_ptr(), out.data_ptr(), x.numel())
"""
RIGHT = "out[i] = x[i] * x[i];"
PTX = 'asm("mul.f32 %0, %1, %1;" : "=f"(out[i]) : "f"(x[i]));'


def graded(judge: ForkingJudge, body: str, header: str = "") -> Verdict:
    return judge.grade(SOURCE.replace("BODY", body).replace("HEADER", header), "square_matrix")


def test_a_kernel_that_needs_more_than_the_simulator_is_not_judged(quick_judge: ForkingJudge) -> None:
    """No points, none out of reach by a mistake, and no failed case: at the build as at the run."""
    for body, header, line in ((RIGHT, "#include <mma.h>", 7), (PTX, "", 11)):
        verdict = graded(quick_judge, body, header)
        assert (verdict.status, verdict.points, verdict.reachable_points) == ("not_judged", 0, 0)
        assert verdict.failure is not None
        assert (verdict.failure.kind, verdict.failure.line) == ("not_simulated", line)
        assert not any(case.mismatch or case.failure for case in verdict.cases)


def test_only_what_runs_is_needed(quick_judge: ForkingJudge) -> None:
    """PTX that no thread reaches, and PTX without an instruction, keep nothing from being judged."""
    assert graded(quick_judge, f'asm volatile("" ::: "memory"); if (n < 0) {{ {PTX} }} {RIGHT}').status == "passed"


def test_a_wrong_case_is_wrong_whatever_the_next_one_needs(quick_judge: ForkingJudge) -> None:
    """The first case, of a few elements, is wrong; a later one would need more than the simulator has."""
    verdict = graded(quick_judge, f"if (n > 100) {{ {PTX} }} out[i] = x[i];")
    assert verdict.status == "failed"
    assert verdict.failure is None
    assert verdict.cases[0].mismatch is not None


TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    BODY
    tl.store(out_ptr + at, x, mask=at < n)

def vector_add(x, y, out):
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
"""
TORCH = """
import torch
code = "__global__ void k(float* x) {}"
BODY

def vector_add(x, y, out):
    torch.add(x, y, out=out)
"""
NUMBA = """
from numba import cuda

@cuda.jit
def kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = BODY

def vector_add(x, y, out):
    kernel[(x.numel() + 63) // 64, 64](cuda.as_cuda_array(x), cuda.as_cuda_array(out))
"""
CUPY = """
import cupy as cp
source = "__constant__ int n; extern \\"C\\" __global__ void k(float* x) { *x = n; }"
BODY

def vector_add(x, y, out):
    out.copy_(x + y)
"""
ASSEMBLY = 'x = tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)'


@pytest.mark.parametrize(
    ("source", "body", "what", "line"),
    [
        (TRITON, ASSEMBLY, "`inline_asm`", 8),
        (TRITON, "x += tl.extra.cuda.globaltimer()", "`globaltimer`", 8),
        (TRITON, "x = tl.extra.cuda.libdevice.j0(x)", "libdevice function `__nv_j0f`", 8),
        (TRITON, "x = tl.map_elementwise(tl.sigmoid, x)", "`map_elementwise`", 8),
        (
            TRITON,
            "tl.make_tensor_descriptor(out_ptr, [n], [1], [BLOCK]).atomic_add([0], x)",
            "`tensor_descriptor_base.atomic_add`",
            8,
        ),
        (TORCH, "torch.cuda.get_arch_list(), torch.cuda.cudart()", "`torch.cuda.cudart`", 4),
        (TORCH, "torch.cuda._compile_kernel(code, 'k')", "`torch.cuda._compile_kernel`", 4),
        (NUMBA, "cuda.cache_hints.ldcg(x, i)", "`cuda.cache_hints`", 8),
        (CUPY, "cp.ElementwiseKernel('T x', 'T y', 'y = x', 'k')", "`cupy.ElementwiseKernel`", 4),
        (CUPY, "cp.cuda.alloc(8)", "`cupy.cuda.alloc`", 4),
        (CUPY, "cp.cuda.runtime.memGetInfo()", "`cupy.cuda.runtime.memGetInfo`", 4),
        (CUPY, "from cupyx import jit", "package `cupyx`", 4),
        (CUPY, "cp.RawModule(code=source).get_global('n')", "`get_global`", 4),
        (CUPY, "cp.RawKernel(source, 'k').num_regs", "`num_regs`", 4),
        (CUPY, "cp.RawModule(code=source, options=('-O3',), backend='nvcc').compile()",
         "`backend='nvcc'` with options that NVRTC does not know", 4),
    ],
)  # fmt: skip
def test_triton_numba_and_cupy_are_treated_alike(
    quick_judge: ForkingJudge, source: str, body: str, what: str, line: int
) -> None:
    """These exist on a GPU, and the interpreter or simulator does not have them."""
    verdict = quick_judge.grade(source.replace("BODY", body), "vector_add")
    assert verdict.status == "not_judged", verdict.failure
    assert verdict.failure is not None
    assert (verdict.failure.message, verdict.failure.line) == (sentence(what), line)


_FAILS = "\n\nfrom triton.runtime import interpreter\ninterpreter.InterpreterBuilder.create_fabs = int\n"


def test_a_kernel_that_compiles_and_fails_in_the_interpreters_own_code_is_not_judged_here(
    quick_judge: ForkingJudge,
) -> None:
    """The interpreter is wrong then. If the compiler refuses the kernel as well, the submission is wrong."""
    source = TRITON.replace("BODY", "x = tl.abs(x)") + _FAILS
    verdict = quick_judge.grade(source, "vector_add")
    assert verdict.status == "not_judged", verdict.failure
    assert verdict.failure is not None
    assert (verdict.failure.message, verdict.failure.line) == (sentence("`abs`"), 8)
    verdict = quick_judge.grade(source.replace("tl.abs(x)", "tl.abs(x) + vector_add"), "vector_add")
    assert verdict.status == "failed"


@pytest.mark.parametrize(
    ("source", "body"),
    [
        (TRITON, "x += tl.globaltimer()"),
        (NUMBA, "cuda.match_sync(0xffffffff, x[i])"),
        (TORCH, "torch.zeros(1, device='cudas')"),
        (CUPY, "cp.ElementwiseKernels('T x', 'T y', 'y = x', 'k')"),
        (CUPY, "cp.cuda.runtime.memGetInformation()"),
        (CUPY, "cp.RawKernel(source, 'k').registers"),
    ],
)
def test_a_name_that_neither_knows_is_a_mistake(quick_judge: ForkingJudge, source: str, body: str) -> None:
    """The exception stays the learner's."""
    verdict = quick_judge.grade(source.replace("BODY", body), "vector_add")
    assert verdict.failure is not None
    assert (verdict.status, verdict.failure.kind) == ("failed", "exception")
