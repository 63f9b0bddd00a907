"""The simulator of CUDA C++ remarks on warps that use many sectors or one bank, and on a launch of one block."""

# ruff: noqa: E501

from __future__ import annotations

import ctypes
import subprocess

import pytest

from grader.worker.simulator import cuda_library
from grader.worker.simulator.cuda_library import Buffer
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate

np = pytest.importorskip("numpy")

N = 256
SOURCE = """
#define KERNEL(name, body) \\
    __global__ void name(const float* x, float* out, int n) { body } \\
    extern "C" void run_##name(const float* x, float* out, int n)
#define AT int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
#define TILE(width, read) __shared__ float tile[32][width]; \\
    for (int i = threadIdx.y; i < 32; i += 8) tile[i][threadIdx.x] = x[(blockIdx.y * 32 + i) * n + blockIdx.x * 32 + threadIdx.x]; \\
    __syncthreads(); \\
    for (int i = threadIdx.y; i < 32; i += 8) out[(blockIdx.x * 32 + i) * n + blockIdx.y * 32 + threadIdx.x] = read;

KERNEL(stores_columns, AT out[column * n + row] = x[row * n + column];) { stores_columns<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(x, out, n); }
KERNEL(loads_columns, AT out[row * n + column] = x[column * n + row];) { loads_columns<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(x, out, n); }
KERNEL(one_bank, TILE(32, tile[threadIdx.x][i])) { one_bank<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(x, out, n); }
KERNEL(padded, TILE(33, tile[threadIdx.x][i])) { padded<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(x, out, n); }
KERNEL(swizzled, TILE(32, tile[i][threadIdx.x ^ i])) { swizzled<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(x, out, n); }
KERNEL(one_block, for (int i = threadIdx.x; i < n * n; i += 256) out[i] = x[i];) { one_block<<<1, 256>>>(x, out, n); }
KERNEL(one_small_block, for (int i = threadIdx.x; i < n; i += 256) out[i] = x[i];) { one_small_block<<<1, 256>>>(x, out, n); }
KERNEL(in_fours, int i = blockIdx.x * 256 + threadIdx.x; reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(x)[i];) { in_fours<<<n * n / 1024, 256>>>(x, out, n); }
KERNEL(in_pairs_of_fours, int i = 2 * (blockIdx.x * 256 + threadIdx.x); float4 v = reinterpret_cast<float4*>(out)[i]; v.x = x[0]; v.y = x[1]; v.z = x[2]; v.w = x[3]; reinterpret_cast<float4*>(out)[i] = v;) { in_pairs_of_fours<<<n * n / 2048, 256>>>(x, out, n); }
__constant__ float table[256];
KERNEL(from_constants, int i = blockIdx.x * 256 + threadIdx.x; out[i] = table[i * 9 % 256];) { from_constants<<<n, 256>>>(x, out, n); }
KERNEL(one_for_all, out[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x];) { one_for_all<<<n, 256>>>(x, out, n); }
#define FOUR_COLUMNS(k) out[column * n + k] = x[k]; out[column * n + k + 1] = x[k]; out[column * n + k + 2] = x[k]; out[column * n + k + 3] = x[k];
KERNEL(many_columns, int column = blockIdx.x * 32 + threadIdx.x; FOUR_COLUMNS(0) FOUR_COLUMNS(8) FOUR_COLUMNS(16) FOUR_COLUMNS(24) FOUR_COLUMNS(32) FOUR_COLUMNS(40) FOUR_COLUMNS(48) FOUR_COLUMNS(56)) { many_columns<<<n / 32, 32>>>(x, out, n); }
KERNEL(some_lanes, int i = blockIdx.x * 256 + threadIdx.x; if (i % 2) out[i * n % (n * n)] = x[i];) { some_lanes<<<2, 256>>>(x, out, n); }
KERNEL(even_and_odd, float s = 0; if (threadIdx.x % 2 == 0) { for (int k = 0; k < n - 236; ++k) s += x[k]; } else { for (int k = 0; k < n - 226; ++k) s += x[n + k]; } out[blockIdx.x * 64 + threadIdx.x] = s;) { even_and_odd<<<2, 64>>>(x, out, n); }
KERNEL(first_thread, float s = x[threadIdx.x]; if (threadIdx.x == 0) for (int k = 0; k < n - 156; ++k) s += x[k]; out[blockIdx.x * 64 + threadIdx.x] = s;) { first_thread<<<2, 64>>>(x, out, n); }
"""
BAD = {
    "stores_columns": "Each warp's store touches 32 sectors of 32 bytes; 4 would do.",
    "loads_columns": "Each warp's load touches 32 sectors of 32 bytes; 4 would do.",
    "one_bank": "32 lanes of each warp's load meet in one bank of shared memory, at `tile[0][0]` for example",
    "one_block": "This launch has one block",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = tmp_path_factory.mktemp("traffic") / "kernels.cpp"
    source.write_text(f'#include "cuda_on_cpu.h"\n#line 1 "cuda_source"\n{translate(SOURCE)}')
    command = ["c++", "-c", "-fPIC", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", source, "-o", source.with_suffix(".o")]
    subprocess.run(command, check=True)
    subprocess.run(["c++", "-shared", source.with_suffix(".o"), "-o", source.with_suffix(".so")], check=True)
    return ctypes.CDLL(str(source.with_suffix(".so")))


def remarks(library: ctypes.CDLL, kernel: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, str]]:
    x, out = (np.zeros(N * N, np.float32) for _ in range(2))
    buffers = [Buffer(each.ctypes.data, each.nbytes, 0, 4, False, name) for each, name in ((x, b"x"), (out, b"out"))]
    cuda_library.send_buffers(library, buffers)
    library[f"run_{kernel}"](ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), N)
    library.cuda_on_cpu_failure.restype = ctypes.c_char_p
    assert library.cuda_on_cpu_failure() is None
    monkeypatch.setattr(cuda_library, "_libraries", {"": library})
    return cuda_library.take_traffic()


@pytest.mark.parametrize("kernel", BAD)
def test_a_wasteful_access_is_named_once(library: ctypes.CDLL, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remark has the line of the access, or of the launch."""
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if text.startswith(f"KERNEL({kernel},"))
    ((found, said),) = remarks(library, kernel, monkeypatch)
    assert found == line
    assert said.startswith(BAD[kernel])
    assert remarks(library, kernel, monkeypatch) == []


def test_remarks_without_room_are_left_out_whole(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with 32 wasteful stores gets as many remarks as fit."""
    found = remarks(library, "many_columns", monkeypatch)
    assert 8 < len(found) < 32
    assert {said for _, said in found} == {
        "Each warp's store touches 32 sectors of 32 bytes; 4 would do. Let neighbouring threads use neighbouring elements."
    }


@pytest.mark.parametrize(
    "kernel",
    [
        "padded",
        "swizzled",
        "one_small_block",
        "in_fours",
        "in_pairs_of_fours",
        "one_for_all",
        "some_lanes",
        "from_constants",
    ],
)
def test_good_access_and_doubtful_one_get_no_remark(
    library: ctypes.CDLL, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padded or swizzled tiles, vectors, one value for all lanes; and requests by some of the lanes."""
    assert remarks(library, kernel, monkeypatch) == []


def test_launches_and_accesses_are_listed_while_they_are_counted(
    library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sectors per access of a warp, or lanes in one bank; then the launch; the list is taken once."""
    monkeypatch.setattr(cuda_library, "_libraries", {"": library})
    cuda_library.counted(on=1)
    remarks(library, "one_bank", monkeypatch)
    remarks(library, "stores_columns", monkeypatch)
    *listed, total = cuda_library.counted(on=0)
    accesses = [(words[2], words[3], int(words[4]) // int(words[5])) for words in listed if words[0] == "access"]
    assert [each[:2] for each in accesses] == [
        ("load", "global"),
        ("store", "shared"),
        ("load", "shared"),
        ("store", "global"),
        ("load", "global"),
        ("store", "global"),
    ]
    few = {4, 5}  # sectors: an array may begin in the middle of one
    assert [each[2] for each in accesses[1:3]] == [1, 32]
    assert {accesses[number][2] for number in (0, 3, 4)} <= few
    assert accesses[5][2] == 32
    kernels = [cuda_library.instance(" ".join(words[1:])) for words in listed if words[0] == "kernel"]
    assert kernels == ["one_bank", "stores_columns"]
    launches = [words for words in listed if words[0] == "launch"]
    assert [words[2:6] for words in launches] == [["8", "8", "1", "256"], ["8", "32", "1", "256"]]
    assert total == ["total", "2"]
    remarks(library, "padded", monkeypatch)
    assert cuda_library.counted(on=0) == [["total", "0"]]


def test_loops_of_some_lanes_and_the_busiest_threads_are_counted(
    library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Per launch: in the busiest block, in all blocks, and how many more these are than those of other warps."""
    monkeypatch.setattr(cuda_library, "_libraries", {"": library})
    cuda_library.counted(on=1)
    remarks(library, "even_and_odd", monkeypatch)
    remarks(library, "first_thread", monkeypatch)
    listed = cuda_library.counted(on=0)
    some = [(int(words[2]), int(words[3])) for words in listed if words[0] == "partly"]
    assert set(some) == {(0x55555555, 20), (0xAAAAAAAA, 30), (1, 100)}
    busiest = [[int(word) for word in words[8:]] for words in listed if words[0] == "launch"]
    assert busiest == [[31, 62, 0], [102, 204, 200]]


def test_a_launch_that_is_planned_does_not_run(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory need not exist."""
    monkeypatch.setattr(cuda_library, "_libraries", {"": library})
    cuda_library.counted(on=2)
    library.run_even_and_odd(None, None, N)
    _, launch, total = cuda_library.counted(on=0)
    assert (launch[0], launch[2:6], total) == ("launch", ["2", "1", "1", "64"], ["total", "1"])


@pytest.mark.parametrize(
    ("function", "instance"),
    [
        ("void flip(const float*, int) [with int SIDE = 32; bool EVEN = true]", "flip<32, true>"),
        ("void map(float*, Function) [with Function = Power<double>]", "map<Power<double>>"),
        ("void own::scale(T*) [with T = Vector<float, 4>; uint32_t = unsigned int]", "own::scale<Vector<float, 4>>"),
        ("void all(Types ...) [with Types = {int, float}]", "all<int, float>"),
        ("void plain(int)", "plain"),
        ("", ""),
    ],
)
def test_an_instance_of_a_template_is_written_as_in_a_launch(function: str, instance: str) -> None:
    """GCC appends what aliases such as `uint32_t` stand for."""
    assert cuda_library.instance(function) == instance
