"""The replacement for CuPy treats names, argument bytes and errors as CuPy and the driver do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grader.worker.failures import describe
from grader.worker.simulator.accesses import take_observed
from grader.worker.simulator.cupy_arrays import CompileException, CUDADriverError
from grader.worker.simulator.cupy_kernels import kernels_in
from grader.worker.simulator.cupy_module import module
from grader.worker.simulator.lacks import NotSimulated

ROOT = Path(__file__).resolve().parents[3]
SOURCE = r"""
#define T 5  // a name that templates like
template <typename U> __device__ U twice(U x) { return 2 * x; }
extern "C" __global__ void __launch_bounds__(64) scale(const float* x, float* out, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * twice(x[i]) + STEP;
}
template <typename U> __global__ void copy(const U* x, U* out, long long n) {
    for (long long i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i];
}
__global__ void mangled(float* out) { out[0] = T; }
"""


@pytest.fixture
def cp() -> Any:
    """Return the replacement without offering it to `import cupy` in this process."""
    return module("cupy")


@pytest.fixture
def raw(cp: Any) -> Any:
    return cp.RawModule(code=SOURCE, options=("-DSTEP=1",), name_expressions=["copy<float>", "copy<double>"])


def test_a_kernel_writes_into_the_tensors_memory(cp: Any, raw: Any) -> None:
    """An array shares its tensor's memory, and options define macros."""
    x, out = torch.arange(40, dtype=torch.float32), torch.zeros(40)
    raw.get_function("scale")((1,), (64,), (cp.asarray(x), cp.asarray(out), np.int32(40), np.float32(3)))
    assert torch.equal(out, 6 * x + 1)


def test_a_template_is_found_by_its_name_expression(cp: Any, raw: Any) -> None:
    """Both instances work, each for its type."""
    for kind, dtype in (("float", np.float32), ("double", np.float64)):
        x = cp.asarray(np.random.default_rng(0).random(50).astype(dtype))
        out = cp.empty_like(x)
        raw.get_function(f"copy<{kind}>")((1,), (32,), (x, out, 50))
        assert (out == x).all()


def test_a_python_float_is_a_double_to_the_driver(cp: Any, raw: Any) -> None:
    """A float parameter gets its low half, as on a GPU: for 1.5 that is 0."""
    x, out = cp.ones(3, dtype=cp.float32), cp.empty(3, dtype=cp.float32)
    raw.get_function("scale")((1,), (64,), (x, out, 3, 1.5))
    assert out.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("n", "factor", "noted"),
    [
        (
            3,
            1.5,
            "Argument 4 of `scale` is of type float64, but the parameter is a float, which takes the bytes as they are",
        ),
        (3, 2, "Argument 4 of `scale` is of type int64, but the parameter is a float"),
        (
            np.float32(4.2e-45),
            np.float32(2),
            "Argument 3 of `scale` is of type float32, but the parameter is an int",
        ),
        (3, 0.0, ""),
        (np.int32(3), np.float32(2), ""),
    ],
)
def test_a_number_of_another_type_than_the_parameter_is_noted(
    cp: Any, raw: Any, n: Any, factor: Any, noted: str
) -> None:
    """The driver copies bytes, whatever they mean, so a note, one for all launches, says what the kernel gets."""
    x, out = cp.ones(3, dtype=cp.float32), cp.empty(3, dtype=cp.float32)
    take_observed()
    for _ in range(3):
        raw.get_function("scale")((1,), (64,), (x, out, n, factor))
    said = [each["message"] for each in take_observed()]
    assert [noted in each for each in said] == [True] * bool(noted), said


def test_arrays_and_numbers_in_another_order_are_refused(cp: Any, raw: Any) -> None:
    """An array where the kernel has a number, or the other way round; an address as a number is fine."""
    x, out = cp.ones(3, dtype=cp.float32), cp.empty(3, dtype=cp.float32)
    scale = raw.get_function("scale")
    with pytest.raises(CUDADriverError, match="argument 3 of 'scale' is an array"):
        scale((1,), (64,), (x, out, out, np.float32(1)))
    with pytest.raises(CUDADriverError, match="argument 1 of 'scale' is a number"):
        scale((1,), (64,), (np.int32(3), out, 3, np.float32(1)))
    scale((1,), (64,), (x.ctypes.data, out, np.int32(3), np.float32(1)))
    assert out.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("copy", "name_expressions"),
        ("mangled", 'extern "C"'),
        ("skale", "no kernel 'skale'"),
        ("copy<int>", "template"),
    ],
)
def test_a_name_that_is_not_found_is_explained(raw: Any, name: str, words: str) -> None:
    """The error is CuPy's, with the reason."""
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND") as caught:
        raw.get_function(name)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("grid", "block", "count", "words"),
    [((1,), (65,), 4, "at most 64 ("), ((0,), (64,), 4, "at least one block"), ((1,), (64,), 3, "instead of 4")],
)
def test_a_launch_that_cannot_be_is_refused(cp: Any, raw: Any, grid: Any, block: Any, count: int, words: str) -> None:
    """The kernel can be launched afterwards, because nothing has failed."""
    x, out = cp.ones(3, dtype=cp.float32), cp.empty(3, dtype=cp.float32)
    arguments = (x, out, np.int32(3), np.float32(1))
    kernel = raw.get_function("scale")
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_VALUE") as caught:
        kernel(grid, block, arguments[:count])
    assert words in str(caught.value)
    kernel((1,), (64,), arguments)
    assert out.tolist() == [3, 3, 3]


@pytest.mark.parametrize("sizes", [5, (5.0,), ()])
def test_a_grid_is_a_tuple_of_ints(cp: Any, raw: Any, sizes: Any) -> None:
    """A single number, or a quotient, is refused with advice."""
    with pytest.raises(TypeError, match="the grid must be"):
        raw.get_function("scale")(sizes, (64,), ())


def test_an_array_that_is_not_on_the_gpu_is_refused(raw: Any) -> None:
    """A kernel takes neither a tensor nor an array of NumPy's."""
    for wrong in (torch.zeros(3), np.zeros(3)):
        with pytest.raises(TypeError, match="argument 1 of 'scale'"):
            raw.get_function("scale")((1,), (64,), (wrong, wrong, 3, 1))


@pytest.mark.parametrize(
    ("code", "options", "words"),
    [
        ('extern "C" __global__ void f() { int a = b; }', (), 'identifier "b" is undefined'),
        ("#include <cmath>\n", (), 'could not open source file "cmath"'),
        ("", ("-O3",), "unrecognized option -O3"),
    ],
)
def test_a_source_that_does_not_compile_raises_nvrtcs_error(cp: Any, code: str, options: Any, words: str) -> None:
    """The exception is CuPy's and has the source."""
    with pytest.raises(CompileException, match=words) as caught:
        cp.RawModule(code=code, options=options).compile()
    assert caught.value.source == code


def test_the_line_of_an_error_is_the_cells(tmp_path: Path) -> None:
    """The report has the cell's line, both for a literal source and for one made from a template."""
    whole = 'extern "C" __global__ void f() {\n    int a = b;\n}\n'
    cell = tmp_path / "submission.py"
    for text, source in (
        (f'import cupy\nsource = """{whole}"""\n', whole),
        (f'x = """// $T\n{whole}"""', "// 1\n" + whole),
    ):
        cell.write_text(text)
        line = text[: text.index("int a")].count("\n") + 1
        number = source[: source.index("int a")].count("\n") + 1
        error = CompileException(
            f'/tmp/a/kern.cu({number}): error: identifier "b" is undefined\n', source, "kern.cu", ()
        )
        told = describe(error, cell)
        assert (told["kind"], told["line"], told["message"]) == ("compile", line, 'identifier "b" is undefined')


def test_fast_math_makes_the_sine_of_a_large_angle_worse(cp: Any) -> None:
    """The GPU's fast sine reduces its angle in float; doubles are unchanged."""
    code = 'extern "C" __global__ void f(const {T}* x, {T}* out) {{ out[threadIdx.x] = sin(x[threadIdx.x]); }}'
    for kind, dtype, least, most in (("float", np.float32, 1e-6, 1e-4), ("double", np.float64, 0, 1e-14)):
        x = cp.asarray(np.linspace(200, 300, 64).astype(dtype))
        out = cp.empty_like(x)
        cp.RawKernel(code.format(T=kind), "f", ("--use_fast_math",))((1,), (64,), (x, out))
        error = np.abs(out.get() - np.sin(x.get().astype(np.float64))).max()
        assert least <= error <= most


def test_a_grid_is_sized_by_the_devices_limits(cp: Any) -> None:
    """Both ways to ask agree. A number that would be made up is not simulated, and another name is unknown."""
    limits, properties = cp.cuda.Device().attributes, cp.cuda.runtime.getDeviceProperties(0)
    for limit, name in (
        ("MaxThreadsPerMultiProcessor", "maxThreadsPerMultiProcessor"),
        ("MaxSharedMemoryPerBlockOptin", "sharedMemPerBlockOptin"),
        ("MultiProcessorCount", "multiProcessorCount"),
    ):
        assert limits[limit] == properties[name]
    assert (limits["MaxGridDimX"], limits["MaxGridDimY"], limits["MaxGridDimZ"]) == properties["maxGridSize"]
    for facts, name in ((limits, "ClockRate"), (properties, "memoryClockRate")):
        with pytest.raises(NotSimulated, match=f"`{name}` of a device"):
            facts[name]
    with pytest.raises(KeyError):
        limits["MultiProcessors"]


def test_arrays_behave_as_cupys(cp: Any) -> None:
    """A single number stays an array, new memory holds garbage, and data from the host are copied."""
    host = np.ones(4, np.float32)
    x = cp.asarray(host)
    host[0] = 7
    for value in (x.sum(), x[1], cp.dot(x, x), x.dot(x)):
        assert isinstance(value, cp.ndarray)
    assert float(x.sum()) == 4
    assert isinstance(cp.multiply.outer(x, x), cp.ndarray)
    assert cp.add.reduce(x).shape == ()
    assert np.isnan(cp.empty(3)).all()
    assert type(x.get()) is np.ndarray
    assert x.data.ptr == x.ctypes.data


def test_kernels_are_read_from_a_source() -> None:
    """Their names, their mangling and their launch bounds are found."""
    text = 'extern "C" { __global__ void a(); __global__ void a() {} }\n#define N 96\n'
    text += "__global__ __launch_bounds__(N, 2) void b(int x) {}"
    found = [
        (kernel.name, kernel.plain, kernel.most_threads) for kernel in kernels_in(text + "// __global__ void c() {}")
    ]
    assert found == [("a", True, None), ("b", False, 96)]


_BODY = "{ if (threadIdx.x < n) out[threadIdx.x] = 2 * x[threadIdx.x]; }"
_PARAMETERS = "(const float* x, float* out, int n)"
_BRANCHES = f"""
#ifdef BACKWARDS
extern "C" __global__ void f{_PARAMETERS} {{ for (int i = n - 1; i >= 0; --i) {{
#else
extern "C" __global__ void f{_PARAMETERS} {{ for (int i = 0; i < n; ++i) {{
#endif
    out[i] = 2 * x[i]; }} }}
extern "C" __global__ void g{_PARAMETERS} {_BODY}
"""
_DEFINED = f"""
#define KERNEL(NAME) extern "C" __global__ void NAME{_PARAMETERS} {_BODY}
KERNEL(f)
#ifdef __CUDA_ARCH__
KERNEL(g)
#else
KERNEL(h)
#endif
"""


@pytest.mark.parametrize("options", [(), ("-DBACKWARDS",), ("-D", "BACKWARDS")])
@pytest.mark.parametrize("source", [_BRANCHES, _DEFINED], ids=["branches", "defined"])
def test_kernels_that_the_preprocessor_chooses_are_found(cp: Any, source: str, options: tuple[str, ...]) -> None:
    """Branches of an `#if` that each open a brace, and kernels that a macro defines, lose no kernel."""
    x = cp.asarray(np.arange(5, dtype=np.float32))
    for name in ("f", "g"):
        out = cp.empty_like(x)
        kernel = cp.RawModule(code=source, options=options).get_function(name)
        kernel((1,), (1 if name == "f" and source == _BRANCHES else 32,), (x, out, np.int32(5)))
        assert (out == 2 * x).all()


_FATBIN = """
import pathlib, subprocess
from grader.worker.simulator import start
start.prepare()
import torch
start.install()
import cupy as cp, numpy as np
open("k.cu", "w").write('extern "C" __global__ void f(float* out) { out[0] = VALUE; }')
subprocess.run(["nvcc", "--fatbin", "-DVALUE=3", "-arch=sm_90", "-o", "k.fatbin", "k.cu"], check=True)
out = cp.zeros(1, dtype=cp.float32)
cp.RawModule(path="k.fatbin").get_function("f")((1,), (1,), (out,))
for name in ("sm_80", "sm_120"):
    kinds = f"-arch={name.replace('sm', 'compute')}", f"-code={name}"
    subprocess.run(["nvcc", "--fatbin", "-DVALUE=3", *kinds, "-o", f"{name}.fatbin", "k.cu"], check=True)
cp.RawModule(path="sm_80.fatbin")
try:
    cp.RawModule(path="sm_120.fatbin")
except Exception as error:
    later = "NO_BINARY_FOR_GPU" in str(error)
wrong = subprocess.run(["nvcc", "--fatbin", "k.cu"], capture_output=True, text=True)
try:
    said = cp.RawModule(path=pathlib.Path("k.fatbin"))
except TypeError as error:
    said = "PosixPath" in str(error)
print(float(out[0]), later, wrong.returncode, "VALUE" in wrong.stderr, said)
"""


def test_nvcc_builds_a_fatbin_that_is_loaded(tmp_path: Path) -> None:
    """A worker in the simulator finds `cupy` and `nvcc`. nvcc can fail; a Path or a later GPU is refused."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _FATBIN], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.returncode) == (["3.0", "True", "2", "True", "True"], 0), done.stderr
