"""CUDA C++ on the CPU: `kernels.cu`, built once with g++, and the rewriting."""

# ruff: noqa: E501

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, flags_with_torch, translate
from grader.worker.simulator.cuda_tokens import tokenize
from grader.worker.toolchain.compiler_errors import first_error

np = pytest.importorskip("numpy")

SOURCE = Path(__file__).with_name("kernels.cu").read_text()
NOTHING_BUT_LAUNCH = "::cuda_on_cpu::launch([&](auto... cuda_on_cpu_a) {{ {kernel}(cuda_on_cpu_a...); }}, ::cuda_on_cpu::Config({config}){rest})"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the shared library of `kernels.cu`."""
    folder = tmp_path_factory.mktemp("kernels")
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(f'#include "cuda_on_cpu.h"\n#line 1 "cuda_source"\n{translate(SOURCE)}')
    compiled = source.with_suffix(".o")
    flags = ["-fPIC", "-Wall", "-Wno-unknown-pragmas", *COMPILER_FLAGS, f"-I{INCLUDE}"]
    subprocess.run(["c++", "-c", *flags, "-o", compiled, source], check=True)
    subprocess.run(["c++", "-shared", "-o", library, compiled], check=True)
    return library


@pytest.fixture
def library(built: Path, tmp_path: Path) -> ctypes.CDLL:
    """Load a separate copy, because a stopped kernel makes the library unusable, like a CUDA context."""
    loaded = ctypes.CDLL(shutil.copy(built, tmp_path / "kernels.so"))
    loaded.cuda_on_cpu_failure.restype = loaded.name_of_error.restype = ctypes.c_char_p
    return loaded


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def failure(library: ctypes.CDLL) -> str:
    return (library.cuda_on_cpu_failure() or b"").decode()


def line_of(kernel: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"// LINE {kernel}"))


def numbers(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(-8, 8, n).astype(np.float32)  # sums are exact


def test_restricted_accessors_are_known(tmp_path: Path) -> None:
    """PyTorch defines their traits for CUDA's compiler alone, and tutorials use them."""
    source = tmp_path / "traits.cpp"
    source.write_text('#include "cuda_on_cpu.h"\nvoid f(at::RestrictPtrTraits<float>::PtrType x) { *x = 1.0f; }\n')
    command = ["c++", "-fsyntax-only", "-w", *flags_with_torch(), f"-I{INCLUDE}", source]
    subprocess.run(command, check=True)
    source.write_text('#include "cuda_on_cpu.h"\nfloat at(const float* x) { return *x; }\n')  # without torch
    subprocess.run(["c++", "-fsyntax-only", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", source], check=True)


# -- kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 255, 256, 257, 3000])
@pytest.mark.parametrize("name", ["tree_sum", "warp_sum"])
def test_reductions_through_shared_memory_and_shuffles_are_right(library: ctypes.CDLL, name: str, n: int) -> None:
    """Barriers, shuffles, static shared memory, templates and atomics give the sum for every size."""
    x, out = numbers(n), np.zeros(1, np.float32)
    library[f"run_{name}"](pointer(x), pointer(out), n)
    assert not failure(library)
    assert out[0] == x.sum()


def test_a_missing_barrier_gives_a_wrong_sum(library: ctypes.CDLL) -> None:
    """A reduction that reads its neighbours too early is not right by luck."""
    x, out = numbers(3000) + 20, np.zeros(1, np.float32)
    library.run_tree_sum_without_barrier(pointer(x), pointer(out), 3000)
    assert out[0] != x.sum()


def test_a_missing_barrier_shows_whichever_neighbour_is_read(library: ctypes.CDLL) -> None:
    """Every second block runs its threads backwards, so reading the left neighbour too early shows as well."""
    x, out = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    library.run_left_neighbour(pointer(x), pointer(out))
    expected = np.where(np.arange(128) % 64, x - 1, 0)
    assert (out != expected).any()


def test_dynamic_shared_memory_holds_what_the_launch_asked_for(library: ctypes.CDLL) -> None:
    """`extern __shared__`, in a kernel and at file scope, is usable to its last byte."""
    for n in (1, 31, 1024):
        x, y = numbers(n), numbers(n)
        library.run_reverse_dynamic(pointer(x), n, 4 * n)
        library.run_reverse_file_scope(pointer(y), n)
        assert not failure(library)
        assert (x == numbers(n)[::-1]).all()
        assert (y == numbers(n)[::-1]).all()


def test_writing_past_dynamic_shared_memory_is_reported(library: ctypes.CDLL) -> None:
    """A launch without the third value is reported with its line."""
    x = numbers(32)
    library.run_reverse_dynamic(pointer(x), 32, 0)
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "reverse_dynamic<<<" in text)
    assert f"past its dynamic shared memory: the launch on line {line} gives it 0 bytes" in failure(library)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (16, 16), (37, 53), (100, 3)])
def test_a_tiled_transpose_over_a_2d_grid_is_right(library: ctypes.CDLL, height: int, width: int) -> None:
    """Two-dimensional blocks, grids and shared arrays have CUDA's indices."""
    x, out = numbers(height * width).reshape(height, width), np.full((width, height), np.nan, np.float32)
    library.run_transpose(pointer(x), pointer(out), height, width)
    assert not failure(library)
    assert (out == x.T).all()


def test_every_thread_of_a_3d_grid_runs_once(library: ctypes.CDLL) -> None:
    """In blocks and grids x is the fastest index, then y, then z."""
    out = np.full(2 * 3 * 4 * 5 * 2 * 3, -1, np.int32)
    library.run_places(pointer(out))
    assert (out == np.arange(out.size)).all()


def test_atomics_return_and_store_what_cuda_does(library: ctypes.CDLL) -> None:
    """100 threads in two blocks use int, unsigned, 64-bit and float atomics."""
    out = np.array([0, -1, 99, 100, 0, -1, -7, 5], np.int32)
    counter, cell, total = np.zeros(1, np.uint32), np.zeros(1, np.uint64), np.zeros(1, np.float32)
    library.run_atomics(pointer(out), pointer(counter), pointer(cell), pointer(total))
    assert out[:5].tolist() == [100, 49, 0, 0, 255]
    assert out[5] in range(50)
    assert out[6] == 5
    assert out[7] == out[5]
    assert (counter[0], int(cell[0]), total[0]) == (0, 49 << 33, 100)


def test_votes_and_shuffles_follow_cuda(library: ctypes.CDLL) -> None:
    """Ballot, any, all, the four shuffles with and without width, half-warp masks and a counting barrier work."""
    out = np.zeros((64, 9), np.uint32)
    library.run_votes(pointer(out))
    assert not failure(library)
    t = np.arange(64)
    lane, warp = t % 32, t // 32
    expected = [
        np.full(64, 0x55555555),
        warp == 1,
        warp == 0,
        warp * 32,
        np.where(t % 8, t - 1, t),
        t ^ 1,
        np.array([t[i // 16 * 16 : i // 16 * 16 + 16].sum() for i in t]),
        2 * np.where(lane < 30, t + 2, t) + 1,
        np.full(64, 22),
    ]
    for got, want in zip(out.T, expected, strict=True):
        assert (got == want).all()


def test_vector_types_have_cudas_layout_and_constant_memory_is_read(library: ctypes.CDLL) -> None:
    """uchar3 has 3 bytes and float4 16; `cudaMemcpyToSymbol` fills `__constant__`; min and max mix types."""
    x, out = np.random.default_rng(0).integers(0, 255, (20, 3)).astype(np.uint8), np.zeros((20, 4), np.float32)
    assert library.run_vectors(pointer(x), pointer(out), 20) == 0
    assert (out[:, :3] == x).all()
    w = np.maximum(np.minimum(x[:, 0], x[:, 1]), np.maximum(x[:, 2], 1)) + np.arange(20) % 4
    assert (out[:, 3] == w).all()


def test_fast_functions_compute(library: ctypes.CDLL) -> None:
    """Intrinsics that glibc partly declares are CUDA's here."""
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    out = np.zeros_like(x)
    library.run_fast_math(pointer(x), pointer(out), 64)
    v = x.astype(np.float64)
    expected = (
        np.exp(v) + np.sin(v) + np.cos(v) + np.log(1 + v * v) + 1 / np.sqrt(1 + v * v) + v / 2 + abs(v) ** 1.5 + v + 39
    )
    assert np.allclose(out, expected, rtol=1e-6)


def test_kernels_named_in_every_way_launch(library: ctypes.CDLL) -> None:
    """Template arguments, namespaces, macros, function pointers and device lambdas work."""
    x = numbers(70)
    library.run_apply(pointer(x), 70)
    assert not failure(library)
    assert (x == (numbers(70) * 2 + 2) * 2 * 2).all()


def test_a_missing_bounds_check_writes_outside(library: ctypes.CDLL) -> None:
    """The judge guards memory: the write goes where the kernel puts it, and no further."""
    memory = np.zeros(100, np.float32)
    assert library.run_fill(pointer(memory), 50, 2, 32) == 0
    assert (memory[:64] == 1).all()
    assert (memory[64:] == 0).all()


def test_arguments_in_braces_become_the_kernels_parameters(library: ctypes.CDLL) -> None:
    """Their types are the kernel's, and its other arguments are converted, as in a call."""
    x, out = numbers(64), np.zeros(64, np.float32)
    library.run_braces(pointer(x), pointer(out), 64)
    assert (failure(library), out.tolist()) == ("", (2 * x + 1).tolist())


@pytest.mark.parametrize("run", ["run_uninitialised", "run_uninitialised_in_file"])
def test_shared_memory_is_not_zero_to_begin_with(library: ctypes.CDLL, run: str) -> None:
    """A read of shared memory that no thread of the block has written gives NaN, in every block."""
    out = np.zeros(3, np.float32)
    library[run](pointer(out))
    assert np.isnan(out).all()
    assert (out.view(np.uint32) != 0xFFFFFFFF).all(), "that NaN says that an output was never written"


def test_what_is_added_to_poison_is_nan_and_no_longer_poison(library: ctypes.CDLL) -> None:
    """As on a GPU, an output that is added to without being zeroed is wrong, but not "never written"."""
    out, wide = np.full(4, 0xFF, np.uint8).view(np.float32), np.full(8, 0xFF, np.uint8).view(np.float64)
    library.run_add_one(pointer(out), pointer(wide))
    assert np.isnan(out[0])
    assert out.view(np.uint32)[0] == 0x7FFFFFFF
    assert np.isnan(wide[0])
    assert wide.view(np.uint64)[0] != 0xFFFFFFFFFFFFFFFF


def test_the_last_block_to_finish_adds_up_launch_after_launch(library: ctypes.CDLL) -> None:
    """A reduction in one launch needs fences, a ticket that wraps, 16-byte loads and the number of SMs."""
    for n in (4, 1024, 40_000):
        x, out = numbers(n), np.zeros(1, np.float32)
        assert library.run_last_block_sum(pointer(x), pointer(out), n) == 0
        assert out[0] == x.sum()


@pytest.mark.parametrize(("grid", "block"), [(1, 1025), (0, 32), (1, 0), (-1, 32)])
def test_a_launch_that_cuda_refuses_is_refused(library: ctypes.CDLL, grid: int, block: int) -> None:
    """Nothing runs, `cudaGetLastError` says `invalid configuration argument` once, and the next launch works."""
    out = np.zeros(64, np.float32)
    code = library.run_fill(pointer(out), 64, grid, block)
    assert library.name_of_error(code).startswith(b"invalid configuration argument: ")
    assert (out == 0).all()
    assert not failure(library)
    assert library.run_fill(pointer(out), 64, 2, 32) == 0
    assert (out == 1).all()


def test_a_refusal_that_the_launcher_does_not_read_is_kept(library: ctypes.CDLL) -> None:
    """The worker can still read it, with line and reason."""
    library.run_fill_unchecked(pointer(np.zeros(1, np.float32)), 1, 2048)
    text = failure(library)
    assert "a block has 2,048 threads; 1,024 are the limit" in text
    assert "(2048, 1, 1)" in text
    assert "line " in text


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("barrier_in_branch", ["12 of 64 threads wait at __syncthreads()", "other 52 ended"]),
        ("two_barriers", ["different barriers"]),
        ("lane_left", ["lane 7 of warp 0 ended without reaching __shfl_down_sync()", "31 other lanes"]),
        ("mask_without_lane", ["Lane 16", "0x0000ffff"]),
    ],
)
def test_a_divergent_call_is_reported_and_does_not_hang(library: ctypes.CDLL, kernel: str, words: list[str]) -> None:
    """The message names the call and its line, and the library stops working, like a broken CUDA context."""
    out = np.zeros(64, np.float32)
    library[f"run_{kernel}"](pointer(out))
    text = failure(library)
    assert f"line {line_of(kernel)}" in text
    assert all(word in text for word in words), text
    out[:] = 0
    assert library.run_fill(pointer(out), 64, 2, 32) == 719
    assert (out == 0).all()


def test_an_assertion_in_a_kernel_stops_it_with_its_place(library: ctypes.CDLL) -> None:
    """As on a GPU, and the message has the condition and the thread."""
    x = np.ones(8, np.float32)
    x[5] = -1
    library.run_asserts(pointer(x), 8)
    assert (
        f"Thread (5, 0, 0) of block (0, 0, 0) stopped the kernel: assert(x[threadIdx.x] > 0) does not hold, line {line_of('asserts')}."
        in failure(library)
    )


def test_a_block_without_barriers_costs_microseconds(library: ctypes.CDLL) -> None:
    """4096 blocks of 256 threads take far less than 1 s."""
    import time

    out = np.zeros(4096 * 256, np.float32)
    start = time.process_time()
    library.run_fill(pointer(out), out.size, 4096, 256)
    assert time.process_time() - start < 0.5  # 3 ms per block would be 12 s
    assert (out == 1).all()


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_the_kernels_are_cuda(tmp_path: Path) -> None:
    """NVIDIA's compiler accepts the kernels of these tests."""
    source = Path(__file__).with_name("kernels.cu")
    command = [
        "nvcc",
        "-arch=sm_90",
        "-std=c++17",
        "--extended-lambda",
        "-diag-suppress=177,549",
        "-c",
        source,
        "-o",
        tmp_path / "kernels.o",
    ]
    subprocess.run(command, check=True)


def test_what_nvcc_refuses_is_refused(tmp_path: Path) -> None:
    """Mixed min and max, and atomics that CUDA does not have, fail here too, at the learner's line."""
    for code, message in [
        ("max(x[0], 0)", "write 0.0f, not 0, beside a float"),
        ("atomicMax(x, 1.0f)", "atomicMax has no version for this type"),
        ("__shfl_sync(~0u, Wide{}, 0).a", "at most 8 bytes"),
    ]:
        text = f"struct Wide {{ float a, b, c; }};\n__global__ void k(float* x) {{\n  x[0] = {code};\n}}\n"
        source = f'#include "cuda_on_cpu.h"\n#line 1 "cell"\n{translate(text)}'
        command = ["c++", "-fsyntax-only", *COMPILER_FLAGS, f"-I{INCLUDE}", "-x", "c++", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True)
        line, found = first_error(done.stderr)
        assert (line, done.returncode) == (3, 1)
        assert message in found


# -- rewriting --------------------------------------------------------------------------------------------------------


def launch(kernel: str, config: str, rest: str) -> str:
    return NOTHING_BUT_LAUNCH.format(kernel=kernel, config=config, rest=rest)


def launch_of_braces(kernel: str, config: str, arguments: str) -> str:
    text = launch(kernel, config, "").replace("::launch(", f"::launcher({kernel}, ")
    return f"{text}({arguments})"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("k<<<1, 2>>>(x);", launch("k", "1, 2", ",x") + ";"),
        ("k<<<1, 2>>>();", launch("k", "1, 2", "") + ";"),
        ("k<<<1, 2>>>( /* none */ );", launch("k", "1, 2", " /* none */ ") + ";"),
        (
            "a::b<int>::k<A<B<C>>><<<g(1, 2), {1, 2}>>>(f(x, y), \">>>\", '(');",
            launch("a::b<int>::k<A<B<C>>>", "g(1, 2), {1, 2}", ",f(x, y), \">>>\", '('") + ";",
        ),
        ("::k<(2 > 1)> <<<1, 2>>> (x);", launch("::k<(2 > 1)> ", "1, 2", ", x") + ";"),
        ("return k<<<1, 2>>>(x);", "return " + launch("k", "1, 2", ",x") + ";"),
        ("else (k)<<<1, 2>>>(x);", "else " + launch("(k)", "1, 2", ",x") + ";"),
        ("else ::k<<<1, 2>>>(x);", "else " + launch("::k", "1, 2", ",x") + ";"),
        ("if (n) k<<<1, 2>>>(x);", "if (n) " + launch("k", "1, 2", ",x") + ";"),
        ("} else\n  k<float>\n<<<1,\n2>>>(\nx\n);", "} else\n  " + launch("k<float>\n", "1,\n2", ",\nx\n") + ";"),
        ("(p)<<<1, 2>>>(x)", launch("(p)", "1, 2", ",x")),
        ("pick(a, b)<<<1, 2>>>(x)", launch("pick(a, b)", "1, 2", ",x")),
        ("k<<<a[i >> 2], b>>>(x >> 1, y << 3)", launch("k", "a[i >> 2], b", ",x >> 1, y << 3")),
        ("cudaLaunchKernel((void *)k<int>, g, b, a);", f"cudaLaunchKernel({' ' * 5}k<int>, g, b, a);"),
        (
            "cudaLaunchKernel(\n reinterpret_cast<const void*>(&k), g);",
            f"cudaLaunchKernel(\n {' ' * 7}(&k), g);",
        ),
        ("cudaLaunchKernel(static_cast<void*>(k), g);", "cudaLaunchKernel(static_cast<void*>(k), g);"),
        ("cudaLaunchKernel((void**)k, g);", "cudaLaunchKernel((void**)k, g);"),
    ],
)
def test_launches_become_calls(source: str, expected: str) -> None:
    """Names, template arguments, brackets, strings and line ends are unchanged."""
    assert translate(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "// k<<<1, 2>>>(x)\n",
        "/* k<<<1, 2>>>(x) */",
        'auto s = "k<<<1, 2>>>(x) \\" __shared__ float a[2];";',
        'auto s = R"q(k<<<1, 2>>>(x) )" __shared__)q";',
        "k<<<1, 2>>(x);",
        "k<<<1, (2>>>(x);",
        "k<<<1, 2>>>;",
        "<<<1, 2>>>(x);",
        "A<B<C<int>>> a(x);",
        "x << y; x >>= 3; a < b; c > d;",
        "#error don't\n",
        "auto n = 1'000'000;",
        "extern int shared_;",
        "}}))",
        "/* never closed",
        "'",
    ],
)
def test_other_code_is_unchanged(source: str) -> None:
    """Comments, strings, shifts, templates and broken launches are left for the compiler."""
    assert translate(source) == source


_KERNEL = "__global__ void __launch_bounds__(64) k(int n) {}\n"


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        (_KERNEL + "void f() { k(3); }", True),
        (_KERNEL + "void f() { if (1) k (3); }", True),
        (_KERNEL + "void f() { k<<<1, 2>>>(3); g(k); }", False),
        ("__global__ void k(int n);\n" + _KERNEL + "int k(float x);", False),
    ],
)
def test_a_kernel_called_like_a_function_does_not_compile(source: str, refused: bool) -> None:
    """The words are nvcc's; launches, declarations and pointers to kernels are left alone."""
    assert ("a __global__ function call must be configured" in translate(source)) == refused
    assert translate(source).count("\n") == source.count("\n")


def test_device_checks_become_cpu_checks() -> None:
    """A tensor on the simulated GPU is a CPU tensor, so checks in code must accept it."""
    source = 'TORCH_CHECK(x.is_cuda() && x.device().type() == torch::kCUDA, "kCUDA"); TORCH_LIBRARY_IMPL(ns, CUDA, m) {} c10::DispatchKey::CUDA; CUDA'
    expected = 'TORCH_CHECK(x.is_cpu() && x.device().type() == torch::kCPU, "kCUDA"); TORCH_LIBRARY_IMPL(ns, CPU, m) {} c10::DispatchKey::CPU; CUDA'
    assert translate(source) == expected


def test_a_copy_to_the_cpu_is_a_copy() -> None:
    """The host may read it, unlike the tensor of the simulated GPU; other members of this name stay."""
    source = "auto sums = partial.cpu(); int cpu = node.cpu + x.is_cpu();"
    assert translate(source) == "auto sums = partial.clone(); int cpu = node.cpu + x.is_cpu();"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("auto a = x.to(torch::kCPU);", "auto a = x.clone().to(torch::kCPU);"),
        ("a = x->to(at::kCPU, at::kDouble);", "a = x->clone().to(at::kCPU, at::kDouble);"),
        ('a = x.sum() . to ("cpu", true);', 'a = x.sum() . clone().to ("cpu", true);'),
        ("a = f(x).to(c10::DeviceType::CPU);", "a = f(x).clone().to(c10::DeviceType::CPU);"),
        ("a = x.to(torch::kFloat64);", "a = x.to(torch::kFloat64);"),
        ("a = x.to(torch::kCUDA); to(kCPU);", "a = x.to(torch::kCPU); to(kCPU);"),
    ],
)
def test_to_the_cpu_is_a_copy_too(source: str, expected: str) -> None:
    """Here a tensor is on the CPU already, and `to` would return it; the rest of a call stays."""
    assert translate(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("p = (float*)malloc(4 * n);", "p = (float*)cuda_on_cpu_malloc(4 * n);"),
        ("{ free(p); }", "{ cuda_on_cpu_free(p); }"),
        ("return calloc(n, 4);", "return cuda_on_cpu_calloc(n, 4);"),
        ("p = static_cast<T*>(std::malloc(n));", "p = static_cast<T*>(  cuda_on_cpu_malloc(n));"),
        ("pool.free(p); my::free(p); void free(T* p); auto f = free;", None),
    ],
)
def test_memory_of_the_host_is_noted(source: str, expected: str | None) -> None:
    """Calls of the C library's functions, and nothing else of the same name."""
    assert translate(source) == (expected or source)


def test_any_text_keeps_its_lines() -> None:
    """Tokens lose no character and the translation loses no line, so error lines stay the learner's."""
    pieces = [
        *(
            "k",
            "<<<",
            ">>>",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "<",
            ">",
            ">>",
            ",",
            ";",
            "::",
            "\n",
            " ",
            "//",
            "/*",
            "*/",
            '"',
            "'",
            "\\",
        ),
        *(
            'R"(',
            ')"',
            "extern",
            "__shared__",
            "float",
            "static",
            "=",
            "template",
            "#define X",
            "return",
            "1'0",
            "CUDA",
            "is_cuda",
            "é",
            "\r\n",
        ),
        *(
            "TORCH_LIBRARY_IMPL",
            "DispatchKey",
            "extern __shared__ float s[];\n",
            "__shared__ int n[3];",
            "k<<<1,\n2>>>(x)",
            "__align__(16)",
        ),
    ]
    dice = random.Random(7)
    for _ in range(4000):
        source = "".join(dice.choices(pieces, k=dice.randint(1, 25)))
        assert "".join(token.text for token in tokenize(source)) == source
        assert translate(source).count("\n") == source.count("\n"), source


def test_random_launches_are_all_rewritten() -> None:
    """Launches made of awkward parts are found, with the right kernel, configuration and arguments."""
    kernels = [
        "k",
        "ns::k",
        "::k",
        "k<float>",
        "k<T, 3>",
        "a<b>::k<c<d>>",
        "k<A<B<C>>>",
        "k<(1 > 0)>",
        "(k)",
        "k<sizeof(int)>",
        "kernels[i + 1]",
        "plan.kernel",
        "this->plans[f(i)].kernel",
        "plan().kernel<float>",
    ]
    configs = [
        "1, 2",
        "dim3(1, 2), dim3(3)",
        "{1, 2}, {3}",
        "(n + 255) / 256, 256, n * sizeof(float)",
        "g[1], b, 0, s",
        "1 /* , */, 2",
    ]
    arguments = [
        "",
        "x",
        "x, y",
        'f(a, g(b)), ")>>>"',
        "a[i], {1, 2}",
        "[&](int i) { return i > 3; }, ')'",
        "x // )\n",
        "h<int>(3) >> 1",
    ]
    dice = random.Random(11)
    for _ in range(500):
        parts = [
            (dice.choice(kernels), dice.choice(configs), dice.choice(arguments)) for _ in range(dice.randint(1, 3))
        ]
        gap = dice.choice(["", " ", "\n", " /* <<< */ "])
        source = " ; ".join(f"{k}{gap}<<<{c}>>>({a})" for k, c, a in parts)
        expected = " ; ".join(
            launch_of_braces(k + gap, c, a) if "{1, 2}" in a else launch(k + gap, c, ("," if a else "") + a)
            for k, c, a in parts
        )
        assert translate(source) == expected
