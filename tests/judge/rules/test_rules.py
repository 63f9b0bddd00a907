"""The rules of an exercise: what is noted of a source and of the kernels that ran; honest code has no notes."""

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
    """Where nothing makes a kernel, the first note says that one is asked for."""
    first = notes(NO_KERNEL[name])[0]
    assert first.sentence.startswith(f"No kernel is written here: {IN_TRITON}")
    assert first.line is None


@pytest.mark.parametrize("name", NO_KERNEL_IN_TEXT)
def test_a_text_without_a_kernel_is_noted(name):
    """What counts is what a compiler makes a kernel of, and not a word in a comment or in another argument."""
    assert any("builds C++ without a kernel in it" in note.sentence for note in notes(NO_KERNEL_IN_TEXT[name]))


@pytest.mark.parametrize("name", NOT_LAUNCHED)
def test_a_kernel_that_is_not_launched_is_noted(name):
    """It is compiled, and the function comes to nothing that launches it."""
    assert any("nothing in `vector_add` launches it" in note.sentence for note in notes(NOT_LAUNCHED[name]))


@pytest.mark.parametrize("name", NOTED)
def test_what_breaks_a_rule_of_the_sum_is_noted(name):
    """The sentence says where, what, and that it takes no points; the line is the finding's, too."""
    source, wanted = NOTED[name]
    found = [note for note in notes(source) if wanted in note.sentence]
    assert len(found) == 1, [note.sentence for note in notes(source)]
    assert found[0].kind == "rule"
    assert found[0].sentence.startswith(f"Line {found[0].line} ")
    assert found[0].sentence.endswith(" It takes no points; your instructor sees this note.")


@pytest.mark.parametrize("name", OF_OTHERS)
def test_what_breaks_a_rule_of_the_others_is_noted(name):
    """Each exercise forbids what would do its own work."""
    source, exercise, wanted = OF_OTHERS[name]
    assert sum(wanted in note.sentence for note in notes(source, exercise)) == 1, notes(source, exercise)


@pytest.mark.parametrize("name", HONEST_SUMS)
def test_an_honest_sum_has_no_notes(name):
    """Code that looks like a trick and is none is left alone."""
    assert notes(HONEST_SUMS[name][0]) == ()


@pytest.mark.parametrize("name", FINE_OF_OTHERS)
def test_honest_work_of_the_others_has_no_notes(name):
    """Any kernel of one's own will do, in whichever language."""
    source, exercise = FINE_OF_OTHERS[name]
    assert notes(source, exercise) == ()


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_reference_has_no_notes(exercise):
    """The course's own solution keeps its rules."""
    assert notes(solution(exercise), exercise) == ()


def test_what_is_grave_is_not_pushed_out_by_what_is_not():
    """Of many notes only some are shown."""
    decoys = "".join(f"    if x.numel() == {1000003 + 2 * number}: y = y.clone()\n" for number in range(30))
    found = notes(f"import torch\ndef vector_add(x, y, out):\n{decoys}    torch.add(x, y, out=out)\n")
    assert len(found) == 12
    assert "torch.add" in found[-1].sentence


def test_what_looks_like_a_stub_is_read_like_all_else():
    """Its decorator, or what comes behind it, may put something else in its place."""
    stub = "def vector_add(x, y, out): raise NotImplementedError('not written yet')\n"
    other = "lambda x, y, out: torch.add(x, y, out=out)"
    for source in (f"@lambda _: {other}\n{stub}", f"{stub}globals()['vector_add'] = {other}\n"):
        assert any("No kernel" in note.sentence for note in notes(f"import torch\n{source}"))


def test_no_honest_submission_has_notes():
    """Of all that people may honestly hand in, nothing is noted."""
    sources = {path: path.read_bytes().decode() for path in sorted(HONEST.glob("*/*.py"))}
    if not sources:
        pytest.skip("there is no corpus of honest submissions")
    noted = {path.name: notes(source, path.parent.name) for path, source in sources.items()}
    assert {name: found for name, found in noted.items() if found} == {}


def test_baselines_are_noted():
    """What the exercises themselves time as the library's work is noted as such, all of it."""
    import inspect

    kernels = {"given"}  # held against the kernel that is given; rungs of the ladder forbid nothing of a library
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
def test_what_is_no_python_is_not_read(source):
    """The judge says what is wrong with it; the rules say nothing, and raise nothing."""
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
    """However a text is made, it is read within seconds, or a note says that it was not."""
    begun = time.process_time()
    found = notes(HOSTILE[name] + "\n")
    assert time.process_time() - begun < 10
    assert len(found) <= 12
    assert all(len(note.sentence) < 500 for note in found)


def test_a_source_that_cannot_be_read_is_noted():
    """Nobody hides from a person by writing more than can be followed."""
    assert any("to be read for the rules" in note.sentence for note in notes(HOSTILE["many names"] + "\n"))


def test_one_line_is_noted_once_for_one_deed():
    """A call of the library whose result is copied to the output is one deed, not two."""
    (note,) = (
        note for note in notes("import torch\ndef vector_add(x, y, out): out.copy_(torch.add(x, y))") if note.line
    )
    assert "calls `torch.add`" in note.sentence


def test_the_same_thing_is_said_once_and_little_is_said_in_all():
    """A submission that does the same in a hundred lines has one note of it; one that does everything, twelve."""
    source = honest("import gc\n" + "    gc.get_objects()\n" * 100)
    assert [note.line for note in notes(source)] == [1 + source[: source.index("gc.get")].count("\n")]
    calls = "".join(f"    x.add_({n}.5)\n" for n in range(3)) + "".join(
        f"    if {{}}[id(x), {n}]: pass\n" for n in range(50)
    )
    assert len(notes(honest(calls))) == 12


def test_text_of_the_submission_is_shown_short_and_on_one_line():
    """What a note quotes is a stranger's: it cannot fill the report."""
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
def test_kernels_of_ones_own_are_not_noted(rows):
    """Nor are fills and copies beside them, a small kernel of torch, or a profiler that does not work."""
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
        "triton_poi_fused_add_0",
        "triton_per_fused__softmax_0",
        "cupy_add__float32_float32_float32",
    ],
)
def test_kernels_of_a_library_that_take_the_time_are_noted(name):
    """Which one, its share, and what the exercise asks for."""
    (sentence,) = of_kernels([library(name), {**TRITON, "microseconds": 20.0}])
    assert sentence.startswith("On the GPU, 50% of the time went to `")
    assert name.removeprefix("void ")[:40] in sentence
    assert "asks for a Triton kernel" in sentence
    assert sentence.endswith("It takes no points; your instructor sees this note.")


@pytest.mark.parametrize("row", [FILL, COPY])
def test_a_call_that_only_moves_memory_ran_no_kernel(row):
    """Fills and copies, without any kernel, are not what an exercise asks for."""
    (sentence,) = of_kernels([row])
    assert "no kernel of the submission ran, just" in sentence


def test_operations_of_torch_in_the_simulator_are_noted_where_they_are_the_exercises_own():
    """Others may be needed: the interpreter makes tensors, too."""
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
def test_rows_that_are_none_are_left_out(rows):
    """The worker can send anything; what is not a row among the first 64 says nothing."""
    assert of_kernels(rows) == []


def test_names_of_kernels_are_shown_short():
    """A name of a megabyte full of line ends stays a sentence."""
    (sentence,) = of_kernels([library("at::native::" + "x\n\x1b" * 300_000)])
    assert len(sentence) < 400
    assert sentence.isprintable()


@pytest.mark.timeout(20)
def test_comments_that_do_not_end_are_read_once():
    """64 kB of openings took six seconds for each exercise: C reads such a comment to the end."""
    assert notes('x = "{' + "/*a" * 100_000 + '"\n' + SQUARE, "square_matrix") == ()


def test_a_kernel_in_another_cell_is_not_said_to_be_missing():
    """Its name is: what is wrong then is that a submission is one cell. Any other failure leaves the note."""
    source = "import triton\ndef vector_add(x, y, out): add_kernel[(1,)](x, y, out)"
    notes = rules.of_source(source, EXERCISES["vector_add"])
    missing = Failure("exception", "NameError: name 'add_kernel' is not defined", 2)
    kept = rules.without_doubtful(notes, [None, missing])
    assert ["No kernel is written here" in note.sentence for note in notes if note not in kept] == [True]
    assert rules.without_doubtful(notes, [None, Failure("exception", "ValueError: no", 2)]) == notes


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["x", "\\", '"\\', "\\\n", "'", "/*", '"', "'\\"])
def test_no_code_takes_long_to_be_rid_of_its_comments(part):
    """Whatever it holds, and however little of it is C++."""
    begun = time.process_time()
    without_comments(part * 60_000)
    assert time.process_time() - begun < 5
