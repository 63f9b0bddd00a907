"""Bugs that the text of CUDA C++ shows: named only where they are, and only if the result is wrong."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from grader.exercises import find
from grader.feedback.cuda_clues import either_bound, launched_in_another_order, stray_access, wrong_result
from grader.feedback.facts import Clues, Facts, clues_in
from grader.feedback.sentences import explained, sentences_from
from grader.verdict import Failure, Mismatch
from tests.honest import corpus as honest
from tests.mistakes import corpus as mistakes

TILES = """
__global__ void product(const float* a, float* out, int n) {
    __shared__ float tile[2][16], other[16];
    float sum = 0.0f;
    for (int first = 0; first < n; first += 16) {
        tile[0][threadIdx.x] = a[first + threadIdx.x];
        FILLED
        for (int k = 0; k < 16; k++) { sum += tile[0][k]; }
        READ
    }
    out[threadIdx.x] = sum;
}
"""
TREE = """
__global__ void total(const float* x, float* out, int n) {
    __shared__ float part[256];
    part[threadIdx.x] = x[threadIdx.x];  // no __syncthreads() yet
    BARRIER
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        BARRIER
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
"""
SUM = """
__global__ void total(const float* x, float* out, int n) { if (threadIdx.x == 0) STATEMENT; }
void run(const float* x, float* out, int n) { total<<<BLOCKS, 256>>>(x, out, n); }
"""
WEIGHTS = """
__constant__ float weights[3];
__global__ void gray(const float* x, float* out) { out[threadIdx.x] = weights[0] * x[threadIdx.x]; }
extern "C" void run(const float* x, float* out, const float* values) { STATEMENT; gray<<<1, 32>>>(x, out); }
"""
BARRIER = "__syncthreads();"


@pytest.mark.parametrize(
    ("filled", "read", "named"),
    [("", "", True), (BARRIER, "", True), ("", BARRIER, True), (BARRIER, BARRIER, False), (BARRIER, "k ^= 1;", False)],
)
def test_a_loop_over_tiles_needs_two_barriers(filled: str, read: str, named: bool) -> None:
    """A loop with two tiles, one filled while the other is read, needs one and is not named."""
    said = wrong_result(TILES.replace("FILLED", filled).replace("READ", read))
    assert ("`tile`" in said and "No `__syncthreads()` is between the two" in said) is named


def test_shared_memory_without_any_barrier_is_named() -> None:
    """A comment is no barrier. Additions in place, as in a tree, need one barrier per step."""
    assert "`part`" in wrong_result(TREE.replace("BARRIER", ""))
    assert "`part`" in wrong_result(TREE.replace("BARRIER", BARRIER, 1).replace("BARRIER", ""))
    assert wrong_result(TREE.replace("BARRIER", BARRIER)) == ""
    scan = TREE.replace("part[threadIdx.x] += part[threadIdx.x + half]", "part[half] += part[half - 1]")
    assert wrong_result(scan.replace("BARRIER", BARRIER, 1).replace("BARRIER", "")) == ""


@pytest.mark.parametrize(
    ("declared", "named"),
    [("float sums[4];", True), ("float sums[4] = {};", False), ("float sums[4]; sums[0] = 0.0f;", False),
     ("float sums[4]; clear(sums);", False), ("Sums sums;", False)],
)  # fmt: skip
def test_a_local_array_needs_a_value_before_it_is_added_to(declared: str, named: bool) -> None:
    """An array that another function may set is not named."""
    code = (
        f"__global__ void k(const float* x, float* out) {{ {declared} sums[1] += x[0]; out[threadIdx.x] = sums[1]; }}"
    )
    struct = "struct Sums { float at[4] = {}; float& operator[](int i) { return at[i]; } };"
    assert ("`sums` before it has a value" in wrong_result(struct + code)) is named


@pytest.mark.parametrize(
    ("statement", "blocks", "named"),
    [
        ("*out += x[0]", "blocks", True),
        ("out[0] += x[0]", "blocks", True),
        ("out[0] += x[0]", "1", False),
        ("atomicAdd(out, x[0])", "blocks", False),
        ("out[blockIdx.x] += x[0]", "blocks", False),
    ],
)
def test_blocks_that_add_to_one_element_need_an_atomic(statement: str, blocks: str, named: bool) -> None:
    """One block alone does not. CuPy launches elsewhere, so the text does not tell how many there are."""
    code = SUM.replace("STATEMENT", statement).replace("BLOCKS", blocks)
    assert ("Blocks run at the same time and in no order" in wrong_result(code)) is named
    assert wrong_result(code.partition("void run")[0]) == ""


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("weights[0] = values[0]", True),
        ("cudaMemcpyToSymbol(weights, values, 12)", False),
        ("if (x == out) {}", False),
        ("float weights[1] = {1}; cudaMemcpyToSymbol(weights, values, 12)", False),
    ],
)
def test_the_host_cannot_assign_to_a_variable_of_the_gpu(statement: str, named: bool) -> None:
    """It would write to a copy of its own."""
    assert ("`weights`" in wrong_result(WEIGHTS.replace("STATEMENT", statement))) is named


def test_an_address_of_the_host_is_named_where_a_kernel_left_its_buffers() -> None:
    """The arguments of the launch are compared with the arrays that the host declares."""
    launch = "void run(float* x, int n) {{ int shape[2] = {{n, n}}; {} }}"
    for argument, named in (("shape", "`shape`"), ("&n", "`n`")):
        assert named in (stray_access(launch.format(f"k<<<n, 32>>>(x, {argument});")) or ("",))[0]
    assert stray_access(launch.format("k<<<n, 32>>>(x, shape[0]);")) is None
    assert "each `__shared__` array" in (stray_access(TREE) or ("", ""))[1]

    left = Failure("illegal_access", "A kernel accessed memory outside of the buffers, or wrote to an input.")
    source = f'source = """{launch.format("k<<<n, 32>>>(x, shape);")}"""'
    told = explained(left, find("square_matrix"), source)
    assert "passes the address of `shape`" in told.meaning
    assert "order of the arguments" in explained(left, find("ls_cupy_baseline"), "").advice
    misaligned = replace(left, detail="CUDA error: misaligned address")
    assert "only at a multiple" in explained(misaligned, find("grayscale"), "").meaning


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("k<<<n, 32>>>(x, out); float sum = out[0];", "Host code uses GPU memory"),
        ("std::vector<float> sums(n); k<<<n, 32>>>(x, sums.data());", "memory that the host allocated, `sums`"),
        ("float* sums = new float[n]; k<<<n, 32>>>(x, sums);", "memory that the host allocated, `sums`"),
        ("float* sums; cudaMalloc(&sums, n); k<<<n, 32>>>(x, sums);", ""),
        ("k<<<n, 32>>>(x, &out[1]); launch(out);", ""),
    ],
)
def test_memory_of_the_other_side_is_named(body: str, named: str) -> None:
    """The host's code cannot use a pointer to the GPU's memory, nor a kernel one to the host's."""
    found = stray_access(f"void run(const float* x, float* out, int n) {{ {body} }}")
    assert (named in found[0]) if named else found is None, found


@pytest.mark.parametrize(
    ("statement", "named"),
    [("total += x[0];", True), ("if (threadIdx.x == 0) total += x[0];", False),
     ("if (threadIdx.x == 0) { total += x[0]; }", False), ("atomicAdd(&total, x[0]);", False)],
)  # fmt: skip
def test_a_shared_variable_of_all_threads_needs_an_atomic(statement: str, named: bool) -> None:
    """One thread alone may add to it."""
    code = f"__global__ void k(const float* x) {{ __shared__ float total; total = 0; {BARRIER} {statement} {BARRIER} }}"
    assert ("Several threads update the same element" in wrong_result(code)) is named


def test_a_very_long_cell_is_not_searched() -> None:
    """Or its author could keep the grader busy."""
    cell = f'source = """{TREE.replace("BARRIER", "")}"""\n'
    assert "`part`" in clues_in(cell, "run").bug
    assert clues_in(cell + 20_000 * "#", "run") == Clues()


def test_a_bug_in_the_text_comes_before_a_guess_from_the_values() -> None:
    """A racing transpose looks like one with a wrong bounds check. The simulator's own sentence comes before both."""
    transpose = find("transpose")
    guess = next(each.sentence for each in transpose.suspects if each.sentence.startswith("A bounds check"))
    wrong = Mismatch("out", (64, 64), 4096, 99, (0, 1), "1.0", "2.0", (0, 0), (63, 63), suspect=guess)
    cell = f'source = """{TILES.replace("FILLED", BARRIER)}"""'
    for clues, suspect, first in (
        (clues_in(cell, "transpose"), guess, "A loop fills `tile`"),
        (clues_in(cell, "transpose"), "Race: seen.", "Race: seen."),
        (Clues(), guess, "A bounds check"),
    ):
        facts = Facts(replace(wrong, suspect=suspect), None, transpose, clues)
        assert sentences_from(facts)[0].startswith(first)
    outside = replace(wrong, wrong=0, outside=3, suspect="")
    assert "barrier" not in " ".join(sentences_from(Facts(outside, None, transpose, clues_in(cell, "transpose"))))


def test_a_block_as_long_as_the_array_explains_a_timeout() -> None:
    """Compiling it takes minutes, so a GPU reports no error of the compiler."""
    late = Failure("timeout", "The run did not end within 45 s and was stopped.")
    kernel = "import triton\n@triton.jit\ndef kernel(x): tl.load(x + tl.arange(0, 8))\n"
    for length, named in (("x.numel()", True), ("x.shape[1]", False)):
        source = f"{kernel}def mean_triton(x, out): kernel[(1,)](x, triton.next_power_of_2({length}))\n"
        assert ("2^20 = 1048576" in explained(late, find("mean_triton"), source).meaning) is named


def test_right_work_has_no_such_bug() -> None:
    """No right file of either corpus, such as one that keeps its scratch memory `volatile` and uses shuffles."""
    right = [each for each in mistakes.corpus() if each.right] + honest.corpus()
    suspected = set()
    for each in right:
        clues = clues_in(each.source, find(each.exercise).entry)
        if clues.bug or (clues.stray and "__shared__" not in clues.stray[1]):
            suspected.add(each.name)
    assert suspected == set()


@pytest.mark.parametrize("text", ["(" * 9000, "[" * 9000, "<<<1>>>()" * 1000, "volatile" + " " * 9000])
def test_odd_text_takes_little_time(text: str) -> None:
    """The judge searches it, so a hostile cell must not keep it for minutes."""
    began = time.process_time()
    clues_in(f'source = "__global__ void k(float* x) {{ __shared__ float s[4]; }} {text}"', "transpose")
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("int sum = 0; for (int i = 0; i < n; i++) sum += x[i];", True),
        ("int value = x[threadIdx.x];", True),
        ("float sum = 0; for (int i = 0; i < n; i++) sum += x[i];", False),
        ("int above = 0; for (int i = 0; i < n; i++) above += x[i] > 0;", False),
        ("int zeros = 0; for (int i = 0; i < n; i++) zeros += x[i] == 0.0f;", False),
        ("int same = x[0] == x[1];", False),
        ("for (int i = 0; i < n; i += 32) out[i] = x[i];", False),
        ("int largest = 0; for (int i = 1; i < n; i++) if (x[i] > x[largest]) largest = i;", False),
    ],
)
def test_an_integer_that_gets_floats_is_named(line: str, named: bool) -> None:
    """A count and an index are integers, and stay so."""
    source = f"__global__ void k(const float* x, float* out, int n) {{ {line} }}"
    assert ("drops the fraction" in wrong_result(source)) is named


@pytest.mark.parametrize(
    ("check", "named"),
    [
        ("if (row < height || column < width) out[0] = 1;", True),
        ("if (row >= height && column >= width) return;", True),
        ("if (row < height && column < width) out[0] = 1;", False),
        ("if (row >= height || column >= width) return;", False),
        ("if (row >= height && column >= width) out[0] = 1;", False),
        ("if (row < 0 || column < 0) return;", False),
    ],
)
def test_conditions_joined_the_wrong_way_are_named(check: str, named: bool) -> None:
    """A thread writes if both conditions hold, and returns if one fails."""
    assert either_bound(f"__global__ void k(float* out, int row, int column) {{ {check} }}") is named


@pytest.mark.parametrize(
    ("passed", "named"), [("a, out, M, K, N", True), ("a, out, M, N, K", False), ("a, out, M, N, N", False)]
)
def test_arguments_in_another_order_are_named(passed: str, named: bool) -> None:
    """Only if the arguments are the parameters: other names may stand for anything."""
    source = (
        "template <typename T> __global__ void product(const T* a, T* out, int M, int N, int K) {}\n"
        f"void run(float* a, float* out, int M, int N, int K) {{ product<float><<<1, 32>>>({passed}); }}"
    )
    assert bool(list(launched_in_another_order(source))) is named


def test_buffers_that_change_their_parts_are_not_named() -> None:
    """One launch has the order of the parameters, so the other is intended."""
    source = (
        "__global__ void step(const float* from, float* to) {}\n"
        "void run(float* from, float* to) { step<<<1, 32>>>(from, to); step<<<1, 32>>>(to, from); }"
    )
    assert list(launched_in_another_order(source)) == []
