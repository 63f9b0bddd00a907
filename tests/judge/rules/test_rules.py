"""The rules of an exercise: notes on a source and on the kernels that ran. Honest code gets no notes."""

import time
from pathlib import Path

import pytest

from grader.authoring.stubs import solution
from grader.exercises import EXERCISES
from grader.judge import rules
from grader.judge.rules.compiled import without_comments
from grader.verdict import Failure
from tests.judge.rule_snippets import BY_THE_LIBRARY, FINE, REACHING, honest, snippets
from tests.judge.submissions import SOFTMAX, changed

HONEST = Path(__file__).parents[2] / "honest" / "submissions"
SQUARE = solution("square_matrix")
IN_TRITON = "this exercise asks for a Triton kernel"


def notes(source, exercise="vector_add"):
    return rules.of_source(source, EXERCISES[exercise])


NO_KERNEL = {
    "the library": "import torch\ndef vector_add(x, y, out): torch.add(x, y, out=out)",
    "a word in a text": "def vector_add(x, y, out): print('triton.jit')",
    "torch.jit": "import torch\n@torch.jit.script\ndef vector_add(x, y, out): out.copy_(x)",
    "a docstring": 'def vector_add(x, y, out):\n    """__global__ void add(float* x) {}"""\n',
    "a text that nothing compiles": "text = '__global__ void add() {}'\ndef vector_add(x, y, out): print(text)",
    "a compiler's name in a text": "def vector_add(x, y, out): return 'RawKernel', '__global__ void add() {}'",
    "a compiler that is imported only": "from cupy import RawKernel\ndef vector_add(x, y, out): out.copy_(x)",
    "a compiler that is mentioned only": "import triton\ntriton.jit\ndef vector_add(x, y, out): out.copy_(x)",
    "a star": "from math import *\ndef vector_add(x, y, out): out.copy_(x)",
    "a decorator of one's own": "def jit(f): return f\n@jit\ndef kernel(x): pass\n"
    "def vector_add(x, y, out): kernel[(1,)](x)",
    "a function of one's own": "def RawKernel(text): return print\nkernel = RawKernel('__global__ void f() {}')\n"
    "def vector_add(x, y, out): kernel(x)",
}
IN_CUPY = "import cupy\nkernel = cupy.RawKernel({}, 'f')\ndef vector_add(x, y, out): {}\n"
BY_TORCH = "from torch.utils.cpp_extension import load_inline\n"
NO_KERNEL_IN_TEXT = {
    "in a comment": IN_CUPY.format("'void f() {} // __global__ void f() {}'", "kernel(x)"),
    "in a comment of lines": IN_CUPY.format("'/* __global__ void f() {} */ void f() {}'", "kernel(x)"),
    "in a text in quotes": IN_CUPY.format("""'const char* s = "__global__ void f() {}"; void g() {}'""", "kernel(x)"),
    "declared only": IN_CUPY.format("'__global__ void f(); void g() {}'", "kernel(x)"),
    "as its name": BY_TORCH + "m = load_inline('__global__ void f() {}', '', 'void f() {}')\n"
    "def vector_add(x, y, out): m.f(x)",
    "as C++": BY_TORCH + "m = load_inline('m', '/* __global__ */ void f() {}', functions=['f'])\n"
    "def vector_add(x, y, out): m.f(x)",
    "made while it runs": BY_TORCH + "import zlib\nm = load_inline('m', '', zlib.decompress(b'x').decode())\n"
    "def vector_add(x, y, out): m.f(x)",
}
NOT_LAUNCHED = {
    "compiled and left": IN_CUPY.format("'__global__ void f() {}'", "out.copy_(x)"),
    "mentioned only": "import triton\n@triton.jit\ndef f(x): pass\ndef vector_add(x, y, out): assert f",
}
NOTED = snippets(BY_THE_LIBRARY) | snippets(REACHING)
HONEST_SUMS = snippets(FINE)
OF_OTHERS = {
    "softmax": ("import torch\ndef softmax(x, out): torch.softmax(x, 1, out=out)", "softmax", "calls `torch.softmax`"),
    "functional": (
        "import torch.nn.functional as F\ndef softmax(x, out): out.copy_(F.softmax(x, dim=1))",
        "softmax",
        "calls `torch.nn.functional.softmax`",
    ),
    "a module": (
        "from torch import nn\nlayer = nn.Softmax(1)\ndef softmax(x, out): out.copy_(layer(x))",
        "softmax",
        "Line 2 calls `torch.nn.Softmax`",
    ),
    "a fused attention": (
        "from torch.nn.functional import scaled_dot_product_attention as attend\n"
        "def attention(q, k, v, out, causal): out.copy_(attend(q, k, v, is_causal=causal))",
        "attention",
        "calls `torch.nn.functional.scaled_dot_product_attention`",
    ),
    "another package's attention": (
        "from flash_attn import flash_attn_func\n"
        "def attention(q, k, v, out, causal): out.copy_(flash_attn_func(q, k, v, causal=causal))",
        "attention",
        IN_TRITON,
    ),
    "a method": ("def softmax(x, out): out.copy_(x.softmax(1))", "softmax", "calls `x.softmax`"),
    "a step of it": ("import torch\ndef softmax(x, out): e = torch.exp(x)", "softmax", "Line 2 calls `torch.exp`"),
    "its first half": (
        changed(SOFTMAX, "    rows, columns", "    out.copy_(x - x.amax(1, keepdim=True))\n    rows, columns"),
        "softmax",
        "`out.copy_(x - x.amax(1, keepdim=True))`",
    ),
    "torch.mul": ("import torch\ndef square_matrix(x, out): torch.mul(x, x, out=out)", "square_matrix", "`torch.mul`"),
    "x * x": ("def square_matrix(x, out): out[:] = x * x", "square_matrix", "goes into the output, `x * x`"),
    "x ** 2": ("def square_matrix(x, out): out[:] = x ** 2", "square_matrix", "goes into the output, `x ** 2`"),
    "ATen from C++": (
        changed(
            SQUARE, 'extern "C"', 'void f(at::Tensor x, at::Tensor out) {\n    at::mul_out(out, x, x);\n}\nextern "C"'
        ),
        "square_matrix",
        "Line 21 calls `at::mul_out`: this exercise asks for a CUDA kernel",
    ),
    "ATen on a line that is joined to the next": (
        changed(SQUARE, 'extern "C"', 'void f(at::Tensor x) {\n    at \\\n :: m\\\nul(x, x);\n}\nextern "C"'),
        "square_matrix",
        "Line 21 calls `at :: mul`: this exercise asks for a CUDA kernel",
    ),
    "ATen between two quotation marks": (
        changed(SQUARE, 'extern "C"', "void f(at::Tensor x) { '\"'; at::mul(x, x); '\"'; }\nextern \"C\""),
        "square_matrix",
        "calls `at::mul`",
    ),
    "C++ alone": (
        "from torch.utils.cpp_extension import load_inline\n"
        "module = load_inline('m', 'void f(at::Tensor x, at::Tensor out) { out.copy_(x * x); }', functions=['f'])\n"
        "def square_matrix(x, out): module.f(x, out)",
        "square_matrix",
        "Line 2 builds C++ without a kernel in it",
    ),
    "a graph in C++": (
        changed(SQUARE, "square_kernel<<<", "cudaGraphLaunch(0, 0); square_kernel<<<"),
        "square_matrix",
        "uses `cudaGraphLaunch`: a graph replays",
    ),
    "a stream in C++": (
        changed(SQUARE, "square_kernel<<<", "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); square_kernel<<<"),
        "square_matrix",
        "makes a CUDA stream",
    ),
}
FINE_OF_OTHERS = {
    "CUDA where Triton is taught": (changed(SQUARE, "def square_matrix", "def softmax"), "softmax"),
    "math": ("import math\n" + changed(SOFTMAX, "    rows, columns", "    math.exp(1)\n    rows, columns"), "softmax"),
    "a method of that name": (changed(SQUARE, "    error = ", "    library().mul(3)\n    error = "), "square_matrix"),
    "a comment in C++": (changed(SQUARE, "    dim3 block", "    // at::mul(x, x) {\n    dim3 block"), "square_matrix"),
    "accessors": (
        "from torch.utils.cpp_extension import load_inline\n"
        "module = load_inline('s', '', '__global__ void f(torch::PackedTensorAccessor32<float, 2> x) {}')\n"
        "def square_matrix(x, out): module.square(x, out)",
        "square_matrix",
    ),
    "CuPy": (
        "import cupy\nkernel = cupy.RawKernel('extern \"C\" __global__ void square() {}', 'square')\n"
        "def square_matrix(x, out): kernel((1,), (1,), (cupy.from_dlpack(x), x.data_ptr()))",
        "square_matrix",
    ),
    "NVRTC": (
        "import torch\nkernel = torch.cuda._compile_kernel('__global__ void square() {}', 'square')\n"
        "def square_matrix(x, out): kernel((1,), (1,), (x, out))",
        "square_matrix",
    ),
    "Numba": (
        "from numba import cuda\n@cuda.jit\ndef square(x, out): out[0] = x[0] * x[0]\n"
        "def square_matrix(x, out): square[1, 1](x, out)",
        "square_matrix",
    ),
}


@pytest.mark.parametrize("name", NO_KERNEL)
def test_a_source_without_a_kernel_is_noted(name):
    """The first note says that the exercise requires a kernel."""
    first = notes(NO_KERNEL[name])[0]
    assert first.sentence.startswith(f"No kernel is written here: {IN_TRITON}")
    assert first.line is None


@pytest.mark.parametrize("name", NO_KERNEL_IN_TEXT)
def test_a_text_without_a_kernel_is_noted(name):
    """Only text that a compiler turns into a kernel counts, not a word in a comment or in another argument."""
    assert any("builds C++ without a kernel in it" in note.sentence for note in notes(NO_KERNEL_IN_TEXT[name]))


@pytest.mark.parametrize("name", NOT_LAUNCHED)
def test_a_kernel_that_is_not_launched_is_noted(name):
    """The kernel is compiled, but the function reaches no launch."""
    assert any("nothing in `vector_add` launches it" in note.sentence for note in notes(NOT_LAUNCHED[name]))


@pytest.mark.parametrize("name", NOTED)
def test_breaking_a_rule_of_vector_add_is_noted(name):
    """The sentence names the line and the problem, and says that it takes no points."""
    source, wanted = NOTED[name]
    found = [note for note in notes(source) if wanted in note.sentence]
    assert len(found) == 1, [note.sentence for note in notes(source)]
    assert found[0].kind == "rule"
    assert found[0].sentence.startswith(f"Line {found[0].line} ")
    assert found[0].sentence.endswith(" It takes no points; your instructor sees this note.")


@pytest.mark.parametrize("name", OF_OTHERS)
def test_breaking_a_rule_of_another_exercise_is_noted(name):
    """Each exercise forbids the library functions that would do its work."""
    source, exercise, wanted = OF_OTHERS[name]
    assert sum(wanted in note.sentence for note in notes(source, exercise)) == 1, notes(source, exercise)


@pytest.mark.parametrize("name", HONEST_SUMS)
def test_an_honest_sum_has_no_notes(name):
    """Code that only looks like a trick gets no note."""
    assert notes(HONEST_SUMS[name][0]) == ()


@pytest.mark.parametrize("name", FINE_OF_OTHERS)
def test_honest_work_in_another_exercise_has_no_notes(name):
    """A submission may write its kernel in any language."""
    source, exercise = FINE_OF_OTHERS[name]
    assert notes(source, exercise) == ()


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_reference_has_no_notes(exercise):
    """The course's own solution keeps the rules."""
    assert notes(solution(exercise), exercise) == ()


def test_serious_notes_are_not_displaced_by_minor_ones():
    """Only some of many notes are shown."""
    decoys = "".join(f"    if x.numel() == {1000003 + 2 * number}: y = y.clone()\n" for number in range(30))
    found = notes(f"import torch\ndef vector_add(x, y, out):\n{decoys}    torch.add(x, y, out=out)\n")
    assert len(found) == 12
    assert "torch.add" in found[-1].sentence


def test_a_stub_is_read_like_any_other_source():
    """A decorator or a later statement may replace the stub."""
    stub = "def vector_add(x, y, out): raise NotImplementedError('not written yet')\n"
    other = "lambda x, y, out: torch.add(x, y, out=out)"
    for source in (f"@lambda _: {other}\n{stub}", f"{stub}globals()['vector_add'] = {other}\n"):
        assert any("No kernel" in note.sentence for note in notes(f"import torch\n{source}"))


def test_no_honest_submission_has_notes():
    """No file of the honest corpus gets a note."""
    sources = {path: path.read_bytes().decode() for path in sorted(HONEST.glob("*/*.py"))}
    if not sources:
        pytest.skip("there is no corpus of honest submissions")
    noted = {path.name: notes(source, path.parent.name) for path, source in sources.items()}
    assert {name: found for name, found in noted.items() if found} == {}


def test_baselines_are_noted():
    """Each baseline that runs the library is noted as a library call."""
    import inspect

    kernels = {"given"}  # compared with the given kernel; rungs of the ladder forbid no library
    for exercise in (each for each in EXERCISES.values() if each.backend != "torch" and each.rules.library):
        for baseline in (each for each in exercise.baselines if each.id not in kernels):
            name = baseline.function.__name__
            source = inspect.getsource(baseline.function).replace(f"def {name}(", f"def {exercise.entry}(")
            found = notes("from typing import Any\n" + source, exercise.id)
            assert any(note.line is not None for note in found), (exercise.id, baseline.id)


@pytest.mark.parametrize(
    "source",
    ["def vector_add(x, y, out:", "def f(): '\ud800'", "\0", "x = " + "(" * 5000, ""],
    ids=["syntax", "no Unicode", "NUL", "brackets", "empty"],
)
def test_a_source_that_does_not_parse_has_no_notes(source):
    """The judge reports the error; the rules report and raise nothing."""
    assert [note for note in notes(source) if note.line is not None] == []


HOSTILE = {
    "deep": "def vector_add(x, y, out):\n    out[:] = " + "+".join(["x"] * 3000),
    "many names": "def vector_add(x, y, out):\n"
    + "".join(f"    a{n} = x\n" for n in range(9000))
    + "    (lambda: 0)\n" * 3000,
    "calls upon calls": "".join(f"def f{n}(*a): f{n + 1}(*a); f{n + 1}(*a)\n" for n in range(3000))
    + "def vector_add(x, y, out): f0(x, y, out)\n",
    "a long target": "def vector_add(x, y, out):\n    " + "out[0] = " * 8000 + "x + '" + "a" * 100_000 + "'\n",
    "tied to each other": ", ".join(f"a{n}" for n in range(9000)) + " = " + ", ".join(f"b{n}" for n in range(9000)),
    "a long key, asked for often": "import sys\nk = sys.modules[" + "+".join("a" * 700) + "]\n"
    + "def f(x, o, a, b, c):\n    [" + "k," * 6000 + "]\ndef vector_add(x, y, out):\n"
    + "".join(f"    f(x, out, {a}, {b}, {c})\n" for a in ("x", "out", "0") for b in ("x", "y", "0") for c in "xy0"),
    "a long command, by its name": "import subprocess\nc = [" + "1," * 9000 + "]\n"
    + "subprocess.run([" + "c," * 9000 + "])\n",
    "a long command, run often": "import subprocess\nc = [" + "1," * 9000 + "]\n" + "subprocess.run(c)\n" * 2000,
    "a tower": "def vector_add(x, y, out):\n    if x.numel() == " + "9**" * 300 + "9: pass\n",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_source_costs_little_and_raises_nothing(name):
    """Any text is read within seconds, or a note says that it could not be read."""
    begun = time.process_time()
    found = notes(HOSTILE[name] + "\n")
    assert time.process_time() - begun < 10
    assert len(found) <= 12
    assert all(len(note.sentence) < 500 for note in found)


def test_a_source_that_cannot_be_read_is_noted():
    """A submission cannot avoid the checks by being too long to follow."""
    assert any("to be checked against the rules" in note.sentence for note in notes(HOSTILE["many names"] + "\n"))


def test_one_line_is_noted_once_for_one_call():
    """A library call whose result is copied to the output gets one note, not two."""
    (note,) = (
        note for note in notes("import torch\ndef vector_add(x, y, out): out.copy_(torch.add(x, y))") if note.line
    )
    assert "calls `torch.add`" in note.sentence


def test_a_repeated_note_is_reported_once_and_the_total_is_limited():
    """A submission that does the same thing in a hundred lines gets one note; one that does everything gets twelve."""
    source = honest("import gc\n" + "    gc.get_objects()\n" * 100)
    assert [note.line for note in notes(source)] == [1 + source[: source.index("gc.get")].count("\n")]
    calls = "".join(f"    x.add_({n}.5)\n" for n in range(3)) + "".join(
        f"    if {{}}[id(x), {n}]: pass\n" for n in range(50)
    )
    assert len(notes(honest(calls))) == 12


def test_quotes_from_the_submission_are_short_and_on_one_line():
    """Quoted text is untrusted, so it must not fill the report."""
    name = "z" * 5000
    (note,) = (note for note in notes(f"def vector_add({name}, y, out): out.copy_({name} + y)") if note.line)
    assert len(note.sentence) < 400
    (note,) = notes(honest("kept = {}\n    kept[id(x), '\\x1b[31m\\n`']\n"))
    assert note.sentence.isprintable()


TRITON = {"name": "softmax_kernel", "count": 1, "microseconds": 30.0}
TORCH = {
    "name": "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>(float*, int)",
    "count": 1,
    "microseconds": 36.0,
}
FILL = {
    "name": "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*> >()",
    "count": 1,
    "microseconds": 900.0,
}
COPY = {"name": "Memcpy DtoD (Device -> Device)", "count": 1, "microseconds": 900.0}
OWN_IN_CPP = {
    "name": "square_kernel(at::GenericPackedTensorAccessor<float, 2ul, at::RestrictPtrTraits, int>, int)",
    "count": 1,
    "microseconds": 30.0,
}


def library(name):
    return {"name": name, "count": 3, "microseconds": 20.0}


def of_kernels(rows, exercise="softmax"):
    return [note.sentence for note in rules.of_kernels(rows, EXERCISES[exercise])]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [TRITON],
        [OWN_IN_CPP],
        [TRITON, FILL, COPY],
        [TRITON, {**TORCH, "microseconds": 5.0}],
        [library("copy_kernel")],
        [library("cublas_like_add"), library("void cub_style<float>(float*)"), library("triton_softmax")],
        [library("void cub::CUB_300000_SM_900::DeviceTransformKernel<MyFunctor>(int)")],
        [library("cudapy::__main__::add[abi:v1](float)")],
    ],
    ids=[
        "nothing",
        "Triton",
        "C++ with at::",
        "fills and copies",
        "a little",
        "copy",
        "names alike",
        "own CUB",
        "Numba",
    ],
)
def test_the_submissions_own_kernels_are_not_noted(rows):
    """Fills, copies, a small torch kernel and a profiler that does not work are not noted either."""
    assert of_kernels(rows) == []


@pytest.mark.parametrize(
    "name",
    [
        TORCH["name"],
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>(float*)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
        "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NNT",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",
        "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, cublasGemvParamsEx<int> >(float)",
        "void at_cuda_detail::cub::DeviceReduceKernel<float>(int)",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >(Params)",
        "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::half_t>::Params)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_kernel0_0",
        "triton_poi_fused_add_0",
        "triton_per_fused__softmax_0",
        "cupy_add__float32_float32_float32",
    ],
)
def test_kernels_of_a_library_that_take_the_time_are_noted(name):
    """The sentence names the kernel, its share of the time, and what the exercise requires."""
    (sentence,) = of_kernels([library(name), {**TRITON, "microseconds": 20.0}])
    assert sentence.startswith("On the GPU, 50% of the time went to `")
    assert name.removeprefix("void ")[:40] in sentence
    assert "asks for a Triton kernel" in sentence
    assert sentence.endswith("It takes no points; your instructor sees this note.")


@pytest.mark.parametrize("row", [FILL, COPY])
def test_a_call_that_only_moves_memory_ran_no_kernel(row):
    """Fills and copies alone do not satisfy an exercise."""
    (sentence,) = of_kernels([row])
    assert "no kernel of the submission ran, only" in sentence


def test_torch_operations_in_the_simulator_are_noted_if_the_exercise_forbids_them():
    """Other operations are allowed: the interpreter creates tensors too."""
    rows = [library("aten::softmax.int_out"), library("aten::add.Tensor"), library("aten::fill_.Scalar")]
    assert [sentence.count("aten::softmax.int_out") for sentence in of_kernels(rows)] == [1]
    assert len(of_kernels(rows, "vector_add")) == 1
    assert of_kernels(rows, "square_matrix") == []


@pytest.mark.parametrize(
    "rows",
    [
        None,
        "rows",
        {"name": "at::native::add", "microseconds": 1.0},
        [None, 3, "at::", [], {}, {"name": 3, "microseconds": 1.0}, {"name": "at::native::a"}],
        [{"name": "at::a", "microseconds": value} for value in ("1", None, True, -1.0, float("nan"), 1e400, 10**400)],
        [{"name": "", "microseconds": 1.0}],
        [TRITON] * 64 + [{**TORCH, "microseconds": 1e8}],
    ],
    ids=["none", "text", "an object", "no rows", "no times", "no name", "too many"],
)  # fmt: skip
def test_malformed_rows_are_ignored(rows):
    """The worker can send anything; only valid rows among the first 64 count."""
    assert of_kernels(rows) == []


def test_kernel_names_are_shortened():
    """A name of a megabyte full of line ends still fits into a sentence."""
    (sentence,) = of_kernels([library("at::native::" + "x\n\x1b" * 300_000)])
    assert len(sentence) < 400
    assert sentence.isprintable()


@pytest.mark.timeout(20)
def test_unterminated_comments_are_read_once():
    """64 kB of comment openings once took six seconds per exercise."""
    assert notes('x = "{' + "/*a" * 100_000 + '"\n' + SQUARE, "square_matrix") == ()


def test_a_kernel_in_another_cell_is_not_reported_as_missing():
    """The failure already names the undefined kernel. Any other failure keeps the note."""
    source = "import triton\ndef vector_add(x, y, out): add_kernel[(1,)](x, y, out)"
    notes = rules.of_source(source, EXERCISES["vector_add"])
    missing = Failure("exception", "NameError: name 'add_kernel' is not defined", 2)
    kept = rules.without_doubtful(notes, [None, missing])
    assert ["No kernel is written here" in note.sentence for note in notes if note not in kept] == [True]
    assert rules.without_doubtful(notes, [None, Failure("exception", "ValueError: no", 2)]) == notes


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["x", "\\", '"\\', "\\\n", "'", "/*", '"', "'\\"])
def test_stripping_comments_is_fast_for_any_text(part):
    """Text that is not valid C++ is included."""
    begun = time.process_time()
    without_comments(part * 60_000)
    assert time.process_time() - begun < 5
