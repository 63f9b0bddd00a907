"""The simulator of CUDA C++ names races, stray and misaligned accesses, and launches beyond a GPU's limits."""

# ruff: noqa: E501

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.worker.simulator.cuda_library import Buffer, send_buffers
from grader.worker.simulator.cuda_source import COMPILER_FLAGS, INCLUDE, translate

np = pytest.importorskip("numpy")

FOLDER = Path(__file__).parent
N = 128
_NAMES = re.compile(r"^(?:RUN\(|extern \"C\" void run_)(\w+)\b", re.MULTILINE)


def kernels(file: str) -> list[str]:
    return [name for name in _NAMES.findall((FOLDER / f"{file}.cu").read_text()) if name not in ("name", "launch")]


def line_of(file: str, mark: str) -> int:
    lines = (FOLDER / f"{file}.cu").read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"// LINE {mark}"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library for each file of kernels."""
    folder = tmp_path_factory.mktemp("accesses")
    for file in ("racy_kernels", "synchronised_kernels", "stray_kernels", "overflow_kernels"):
        source = folder / f"{file}.cpp"
        text = translate((FOLDER / f"{file}.cu").read_text())
        source.write_text(f'#include "cuda_on_cpu.h"\n#line 1 "cuda_source"\n{text}')
        command = ["c++", "-c", "-fPIC", "-w", *COMPILER_FLAGS, f"-I{INCLUDE}", source, "-o", source.with_suffix(".o")]
        subprocess.run(command, check=True)
        subprocess.run(["c++", "-shared", source.with_suffix(".o"), "-o", source.with_suffix(".so")], check=True)
    return folder


class Loaded:
    """A copy of a library, because a stopped kernel makes it unusable, and what it says about a run."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library = ctypes.CDLL(shutil.copy(library, folder))
        self.library.cuda_on_cpu_failure.restype = self.library.cuda_on_cpu_observed.restype = ctypes.c_char_p
        x = np.arange(N, dtype=np.float32) % 7 + 1
        raw = np.zeros(N + 8192, np.float32)
        self.x, self.out = raw[4096 : 4096 + N], np.zeros(4 * N, np.float32)
        self.x[:] = x
        self.raw = raw

    def said(self) -> str:
        return (self.library.cuda_on_cpu_failure() or self.library.cuda_on_cpu_observed() or b"").decode()

    def run(self, name: str, n: int = N) -> str:
        pointers = (ctypes.c_void_p(each.ctypes.data) for each in (self.x, self.out))
        self.library[f"run_{name}"](*pointers, n)
        return self.said()

    def name_buffers(self, read_only: bool = False) -> None:
        x, out = (
            Buffer(each.ctypes.data, each.nbytes, guard, each.itemsize, closed, name)
            for each, guard, closed, name in ((self.x, 16384, read_only, b"x"), (self.out, 0, False, b"out"))
        )
        send_buffers(self.library, [x, out])


@pytest.mark.parametrize("name", kernels("racy_kernels"))
def test_a_race_is_named_although_the_result_is_right(built: Path, tmp_path: Path, name: str) -> None:
    """The sentence has the line, both threads and what orders them."""
    text = Loaded(built / "racy_kernels.so", tmp_path).run(name)
    assert text.startswith("Race: thread "), text
    assert f" on line {line_of('racy_kernels', name)}" in text
    assert len(re.findall(r"thread \(?\d", text)) == 2
    assert re.search(r"__syncwarp|__syncthreads|an atomic|__threadfence", text)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("name", kernels("synchronised_kernels"))
def test_synchronised_kernels_raise_no_alarm(built: Path, tmp_path: Path, name: str, named: bool) -> None:
    """Twice, because the second launch runs its blocks in the other order of threads."""
    loaded = Loaded(built / "synchronised_kernels.so", tmp_path)
    if named:
        loaded.name_buffers()
    for _ in range(2):
        assert loaded.run(name) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("past_a_tile", "uses the index 8 on line {line}, past the end of `tile`, a `float [8][33]` declared on line {tile}"),
        ("past_a_row_by_pointer", "writes 4 bytes on line {line}, past the end of `row`, declared on line {row}: element 32"),
        ("past_a_table", "uses the index 16 on line {line}, past the end of `table`, a `float [16]` declared on line {table}"),
        ("past_a_local_array", "uses the index 4 on line {line}, outside of a `float [4]`"),
        ("past_dynamic", "reads 4 bytes on line {line}, past its dynamic shared memory: the launch on line"),
        ("null_pointer", "reads 4 bytes on line {line}, through a null pointer"),
        ("number_as_a_pointer", "reads 4 bytes on line {line}, at 0x7ff07ff03f5a2874, which is in no array that the kernel was given"),
        ("reads_past_the_end", "reads 4 bytes on line {line}, past the end of `x`, which has 128 elements: element 128"),
        ("past_own_memory", "reads 4 bytes on line {line}, past the end of `cudaMalloc's memory`"),
        ("four_at_an_odd_element", "at byte 4 of `x` on line {line}. A GPU can access it only where its address is a multiple of 16"),
        ("word_at_an_odd_byte", "at byte 3 of `x` on line {line}. A GPU can access it only where its address is a multiple of 4"),
        ("atomic_at_an_odd_byte", "uses an atomic at byte 2 of `out` on line {line}."),
        ("too_much_shared", "declares 49536 bytes of `__shared__` memory; 49,152 are the limit"),
    ],
)  # fmt: skip
def test_a_stray_or_misaligned_access_is_named(built: Path, tmp_path: Path, name: str, words: str) -> None:
    """With the line, and with the array and its declaration where they are known."""
    loaded = Loaded(built / "stray_kernels.so", tmp_path)
    loaded.name_buffers()
    marks = {mark: line_of("stray_kernels", mark) for mark in ("tile", "row", "table")}
    line = line_of("stray_kernels", name) if "{line}" in words else 0
    assert words.format(line=line, **marks) in loaded.run(name, 100 if name == "past_a_local_array" else N)


def test_a_write_to_an_input_is_named(built: Path, tmp_path: Path) -> None:
    """It stops the kernel before it happens."""
    loaded = Loaded(built / "stray_kernels.so", tmp_path)
    loaded.name_buffers(read_only=True)
    assert "writes element 0 of `x` on line" in loaded.run("writes_its_input")
    assert loaded.x[0] == 1


@pytest.mark.parametrize(
    ("sizes", "dynamic", "words"),
    [
        ((1, 1, 1, 64, 32, 1), 0, "a block has 2,048 threads; 1,024 are the limit"),
        ((1, 1, 1, 1, 1, 65), 0, "a block is 65 threads deep in z; 64 are the limit"),
        ((1, 65536, 1, 1, 1, 1), 0, "the grid has 65,536 blocks in y; 65,535 are the limit"),
        ((1, 1, 65536, 1, 1, 1), 0, "the grid has 65,536 blocks in z; 65,535 are the limit"),
        ((1, 1, 1, 1, 1, 1), 49153, "asks for 49,153 bytes of dynamic shared memory; 49,152 are the limit without"),
        ((1, 1, 1, 1024, 1, 1), 49152, ""),
    ],
)
def test_a_gpus_limits_hold(built: Path, tmp_path: Path, sizes: tuple[int, ...], dynamic: int, words: str) -> None:
    """The sentence says the number and the limit."""
    loaded = Loaded(built / "stray_kernels.so", tmp_path)
    loaded.library.run_launch((ctypes.c_uint * 6)(*sizes), dynamic)
    assert words in loaded.said() if words else loaded.said() == ""


def test_more_dynamic_shared_memory_needs_permission(built: Path, tmp_path: Path) -> None:
    """`cudaFuncSetAttribute` allows up to 227 KiB."""
    loaded, one = Loaded(built / "stray_kernels.so", tmp_path), (ctypes.c_uint * 6)(1, 1, 1, 1, 1, 1)
    assert loaded.library.run_allow(232449)
    assert not loaded.library.run_allow(232448)
    loaded.library.run_launch(one, 232448)
    assert loaded.said() == ""
    loaded.library.run_launch(one, 232449)
    assert "asks for 232,449 bytes of dynamic shared memory; 232,448 are the limit" in loaded.said()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("product", "65536 * 65536{} does not fit in its type, `int`."),
        ("sum", "65536 + 2147418112{} does not fit in its type, `int`."),
        ("difference", "-2147483647 - 65536{} does not fit in its type, `int`."),
        ("atomic", "67108864 + 2080374784{} does not fit in its type, `int`."),
        ("block", "4 * 1073741824{} does not fit in its type, `unsigned int`."),
    ],
)
def test_an_overflow_is_named_with_its_line(built: Path, tmp_path: Path, name: str, said: str) -> None:
    """Once, with both numbers and the type; the judge says it only if the result is wrong."""
    loaded = Loaded(built / "overflow_kernels.so", tmp_path)
    text = loaded.run(name, 1 << 16)
    where = f" on line {line_of('overflow_kernels', name)}"
    assert text == f"Overflow: {said.format(where)} Use a wider one, such as `long long`."
    assert loaded.said() == ""


def test_what_wraps_around_by_definition_is_no_overflow(built: Path, tmp_path: Path) -> None:
    """Unsigned integers, narrow types, wide ones, negative steps, and the host's integers. A variable without a value is
    another bug.
    """
    loaded = Loaded(built / "overflow_kernels.so", tmp_path)
    assert "Overflow" not in loaded.run("wraps", 1 << 16) + loaded.said() + loaded.said()


def test_an_access_outside_names_the_overflow_before_it(built: Path, tmp_path: Path) -> None:
    """It is the likely cause."""
    loaded = Loaded(built / "overflow_kernels.so", tmp_path)
    loaded.name_buffers()
    text = loaded.run("outside", 1 << 16)
    assert text.startswith("Outside: ")
    line = line_of("overflow_kernels", "outside")
    assert f" Before that, 32768 * 65536 on line {line} does not fit in its type, `int`." in text
