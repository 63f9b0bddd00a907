"""Device code, taken out of a CUDA C++ source and compiled by NVRTC."""

import pytest

from grader.words import kernel_name
from grader.worker.simulator import cuda_compiled
from grader.worker.simulator.cuda_compiled import Unsure, device_code, refusal
from grader.worker.toolchain.nvrtc import Compiled

_KERNEL = "__global__ void kernel(int* x) {\n    *x = twice(2);\n}\n"


def test_host_code_is_left_out_and_lines_stay():
    """Headers and functions of the host become blanks; kernels, structs and constants stay on their lines."""
    source = (
        "#include <vector>\nconstexpr int N = 2;\nint host(std::vector<int> v) {\n    return v[0];\n}\n"
        "__global__ void kernel(int* x) { *x = N; }\nvoid launch(int* x) { kernel<<<1, 1>>>(x); }\n"
    )
    found = device_code(source)
    assert [line.strip() for line in found.code.split("\n")] == [
        "", "constexpr int N = 2;", "", "", "", "__global__ void kernel(int* x) { *x = N; }", "", ""
    ]  # fmt: skip
    assert found.calls == []


def test_a_call_of_a_host_function_is_named():
    """A function without `__device__` cannot be called from a kernel, wherever it is defined."""
    said = 'calling a __host__ function("twice") from a __global__ function("kernel") is not allowed'
    assert refusal("int twice(int x) { return 2 * x; }\n" + _KERNEL, "") == f"cuda_source(3): error: {said}"
    assert refusal("__device__ int twice(int x) { return 2 * x; }\n" + _KERNEL, "") == ""


_STRUCT = """struct Square {{
    int side;
    __host__ __device__ Square(int side) : side(side) {{}}
    {0} int operator()(int x) const {{
        return x * x;
    }}
    int area() {{ return side * side; }}
}};
"""


@pytest.mark.parametrize(
    ("marked", "body", "says"),
    [
        ("", "*x = Square(2)(*x);", 'calling a __host__ function("Square::operator()(int) const") from a __global__'),
        ("__device__", "*x = Square(2)(*x);", ""),
        ("constexpr", "*x = Square(2)(*x);", ""),
        ("__device__", "*x = Square(2).area();", 'calling a __host__ function("Square::area()") from a __global__'),
        ("", "*x = 1;", ""),
    ],
)
def test_a_call_of_a_member_function_of_the_host_is_named(marked, body, says):
    """Member functions count one by one, and only if a kernel calls them."""
    said = refusal(f"{_STRUCT.format(marked)}__global__ void kernel(int* x) {{\n    {body}\n}}\n", "")
    assert said.startswith("cuda_source(10): error: ") == bool(says)
    assert says in said


@pytest.mark.parametrize("launch", ["kernel<<<1, 1>>>(Square{2}, x)", "kernel<Square><<<1, 1>>>(2, x)"])
def test_a_member_function_of_the_host_is_named_in_a_template(launch):
    """Templates are compiled for the types with which they are launched."""
    kernel = "template <typename F>\n__global__ void kernel(F f, int* x) { *x = f(*x); }\n"
    host = f"void run(int* x) {{ if (x) {launch}; }}\n"
    assert '"Square::operator()(int) const") from a __global__' in refusal(_STRUCT.format("") + kernel + host, "")
    assert refusal(_STRUCT.format("__device__") + kernel + host, "") == ""


@pytest.mark.parametrize("body", ["decltype(s.area()) y = 2; *x = y;", "*x = sizeof(s.area());"])
def test_a_host_function_may_be_named_where_it_is_not_called(body):
    source = f"{_STRUCT.format('__device__')}__global__ void kernel(Square s, int* x) {{ {body} }}\n"
    assert refusal(source, "") == ""


@pytest.mark.parametrize(("first", "refused"), [("Twice{}", False), ("Square{2}", True)])
def test_the_type_of_a_template_is_that_of_the_argument_in_its_place(first, refused):
    """Another argument may have a type with members of the host."""
    twice = "struct Twice { __device__ int operator()(int x) const { return 2 * x; } };\n"
    kernel = "template <typename F>\n__global__ void kernel(F f, Square s, int* x) { *x = f(s.side); }\n"
    host = f"void run(int* x) {{ kernel<<<Square{{2}}.area(), 1>>>({first}, Square{{2}}, x); }}\n"
    assert bool(refusal(_STRUCT.format("") + twice + kernel + host, "")) == refused


def test_a_macro_may_mark_a_member_function():
    source = "#define HD __host__ __device__\n" + _STRUCT.format("HD")
    assert refusal(source + "__global__ void kernel(int* x) { *x = Square(2)(*x); }\n", "") == ""


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (
            "void run(int* x) { twice<<<1, 1>>>(x); }",
            'a host function call cannot be configured: "twice" is not a kernel',
        ),
        ("void run(int* x) { kernel<<<1, blockDim.x>>>(x); }", 'identifier "blockDim" is undefined in host code'),
        ("void run(int* x) { dim3 blockDim(32); kernel<<<1, blockDim>>>(x); int n = blockDim.x; }", ""),
        ("void run(int* x, dim3 gridDim) { kernel<<<gridDim.x, 32>>>(x); }", ""),
        ("void run(int* x, void (*f)(int*)) { f = kernel; f<<<1, 32>>>(x); }", ""),
        ("void run(int* x) { cudaLaunchConfig_t c = {}; c.blockDim.x = 32; kernel<<<1, c.blockDim.x>>>(x); }", ""),
        ("\n#define KERNEL __global__\nKERNEL void other(int* x) { *x = threadIdx.x; }", ""),
    ],
    ids=["launch", "variable", "own", "parameter", "pointer", "member", "macro"],
)
def test_launches_of_functions_and_a_threads_variables_on_the_host_are_refused(host, says):
    """As nvcc, or the loader, says it, on the host's line; the host's own variables may have these names."""
    kernel = "__global__ void kernel(int* x) { *x = blockDim.x; }\nvoid twice(int* x) { *x *= 2; }\n"
    said = refusal(kernel + host, "")
    assert said.startswith("cuda_source(3): error: ") == bool(says)
    assert says in said


@pytest.mark.parametrize(
    ("before", "body", "says"),
    [
        ("float factor = 2;\n", "*x = factor;", 'identifier "factor" is undefined in device code'),
        ("const int table[2] = {1, 2};\n", "*x = table[*x];", 'identifier "table" is undefined in device code'),
        ("#include <map>\nstd::map<int, int> sizes;\n", "*x = sizes[0];", 'identifier "sizes" is undefined'),
        ("#include <iostream>\n", "std::cout << *x;", 'identifier "std::cout" is undefined in device code'),
        ("#include <vector>\n", "std::vector<int> v(1); *x = v[0];", 'identifier "std::vector" is undefined'),
        ("", "*x = rand();", 'calling a __host__ function("rand") from a __global__ function("kernel")'),
        ("", "cudaDeviceSynchronize();", 'calling a __host__ function("cudaDeviceSynchronize")'),
        ("__constant__ int one;\n", "one = 1;", "a `__constant__` or const variable cannot be written"),
        ("", "return 1;", "return value type does not match"),
    ],
    ids=["variable", "table", "map", "stream", "vector", "rand", "wait", "constant", "value"],
)
def test_what_only_the_host_has_is_refused(before, body, says):
    """The error is on the kernel's line, as nvcc says it."""
    said = refusal(f"{before}__global__ void kernel(int* x) {{\n    {body}\n}}\n", "")
    assert f"cuda_source({2 + before.count(chr(10))}): error: " in said
    assert says in said


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("const float factor = 2;\n", "*x = factor;"),
        ("constexpr int table[2] = {1, 2};\n", "const int one = table[1]; *x = one;"),
        ("static __device__ int counter;\n__constant__ int one = 1;\n", "counter = one;"),
        ("#define TABLE(w) {w, 2 * w}\n__constant__ int both[2] = TABLE(3);\n", "*x = both[*x];"),
        ("#define ONE(w) w\n__constant__ int both[2] = {ONE(3), ONE(4)};\n", "*x = both[*x];"),
        ("int calls = 0;\n", "int calls = 1; *x = calls;"),
        ("", "auto rand = [](int value) { return value; }; *x = rand(*x);"),
        ("__device__ int time(int* at) { return *at; }\n", "*x = time(x);"),
        ("struct Timer { void wait() { cudaDeviceSynchronize(); } };\n", "*x = 1;"),
        ("#include <vector>\nstd::vector<int> sizes;\nint count() { return sizes.size() + rand(); }\n", "*x = 1;"),
    ],
    ids=["number", "constexpr", "device", "macro", "macros", "shadowed", "lambda", "own", "struct", "host"],
)
def test_names_of_the_host_that_a_kernel_declares_or_does_not_use_are_right(before, body):
    """A name counts only where no declaration of the device code has it; what the host does with it is its own."""
    try:
        said = refusal(f"{before}__global__ void kernel(int* x) {{\n    {body}\n}}\n", "")
    except Unsure:
        said = ""
    assert said == ""


@pytest.mark.parametrize(
    "log",
    [
        "cub/block.cuh(61): error: A function explicitly marked as a __host__ function is not allowed in JIT mode",
        "cooperative_groups.h(9): error: something in a header",
        'cell(3): error: identifier "uint4x" is undefined',
    ],
)
def test_errors_that_may_be_nvrtcs_own_say_nothing(monkeypatch, log):
    """NVRTC has fewer headers than nvcc: an error in one of them, or a missing one, must not fail the work."""
    monkeypatch.setattr(cuda_compiled, "_nvrtc", lambda code: Compiled(log))
    with pytest.raises(Unsure):
        refusal("__global__ void kernel(int* x) { *x = 1; }", "")


_EACH = "template <typename F>\n__global__ void each(int n, F f) { if (threadIdx.x < n) f(threadIdx.x); }\n"


@pytest.mark.parametrize(
    ("host", "says", "with_flag"),
    [
        ("each<<<1, n>>>(n, [=] __device__ (int i) { x[i] = 1; });", "requires --extended-lambda", ""),
        ("each<<<1, n>>>(n, [=](int i) { x[i] = 1; });", 'function("lambda")', 'function("lambda")'),
        (
            "auto f = [=](int i) mutable { x[i] = 1; }; each<<<1, n>>>(n, f);",
            'function("lambda")',
            'function("lambda")',
        ),
        ("auto blocks = [](int n) { return n; }; each<<<blocks(n), 1>>>(blocks(n), Set{x});", "", ""),
        ("int m = [&] { return n; }(); each<<<1, m>>>(m, Set{x});", "", ""),
        ("each<<<1, n>>>([&]() -> int { return n; }(), Set{x});", "", ""),
        ("each<<<1, n>>>(n, Set{x}); } void other(int m) { auto n = [=](int i) { return i; }; n(m);", "", ""),
        ("List<List<List<int>>>([](int i) { return i; }); each<<<1, n>>>(n, Set{x});", "", ""),
    ],
    ids=["flag", "literal", "name", "of the host", "called", "argument called", "other function", "template"],
)
def test_a_lambda_for_the_gpu_needs_a_word_and_a_flag(host, says, with_flag):
    """Lambdas that only the host calls need neither, even among a launch's arguments."""
    of_host = "template <typename T> struct List { template <typename F> List(F) {} };\n"
    functor = "struct Set { int* x; __device__ void operator()(int i) { x[i] = 1; } };\n"
    source = f"{_EACH}{of_host}{functor}void run(int n, int* x) {{ {host} }}\n"
    for flags, text in (((), says), (("--extended-lambda",), with_flag)):
        said = refusal(source, "", flags)
        assert text in said
        assert bool(said) == bool(text)


def test_the_macros_of_nvccs_flags_are_defined():
    """Without them, an `#error` or another branch would be compiled."""
    checked = "#if !defined(T) || WIDTH != 4 || TWICE(2) != WIDTH\n#error no type\n#endif\n"
    source = f"{checked}__global__ void kernel(T* x) {{ x[WIDTH] = 0; }}\n"
    assert refusal(source, "", ("-O3", "-DT=float", "-D", "WIDTH=4", "-DTWICE(x)=(2*(x))")) == ""


@pytest.mark.parametrize(
    ("parameters", "refused"),
    [
        ("const int& n, int* x", True),
        ("int (&x)[2]", True),
        ("int n, int* x", False),
        ("int* x, int (*f)(const int&), int n = 3 & 1", False),
    ],
)
def test_a_kernels_parameter_is_no_reference(parameters, refused):
    source = f"__global__ void __launch_bounds__(32, 2) kernel({parameters}) {{ if (x && x) x[1 & 3] = 1; }}\n"
    assert ("cannot be a reference" in refusal(source, "")) == refused


@pytest.mark.parametrize(
    ("before", "body", "refused"),
    [
        ("", "for (int i = 0; i < 2; ++i) x[i] = W[i];", True),
        ("", "x[0] = W[threadIdx.x];", True),
        ("__constant__ ", "x[0] = W[threadIdx.x];", False),
        ("", "x[0] = x[0] >> W[0];", True),
        ("", "x[W[0]] = 1;", True),
        ("", "constexpr int k = 1; const int m = 0; const int s = W[k] + W[m] + W[N] + W[1]; x[0] = s;", False),
        ("", "static_assert(W[0] == 1); switch (x[0]) { case W[0]: { int own[W[1]]; x[0] = sizeof(own); } }", False),
        ("", "x[0] = Value<W[0]>::value;", False),
        ("", "constexpr int own[2] = {W[0], W[1]}; const int s{W[0]}; x[0] = own[1] + s;", False),
        ("", "uint32_t first = W[0]; x[0] = first;", False),
        ("", "if (x[0]) { W[0]; } else x[1] = W[1];", True),
        ("", "__shared__ int W[32]; W[threadIdx.x] = 1; x[0] = W[threadIdx.x];", False),
        ("", "const int* W = x; for (int i = 0; i < 2; ++i) x[i] += W[i];", False),
    ],
    ids=[
        "loop",
        "thread",
        "constant memory",
        "shift",
        "index",
        "initial value",
        "constants",
        "argument",
        "braces",
        "type by name",
        "block",
        "own array",
        "own pointer",
    ],
)
def test_the_hosts_constexpr_array_is_for_constants_in_a_kernel(before, body, refused):
    """The GPU has no such array, but nvcc computes constants itself. Seen with nvcc 13.0."""
    source = f"{before}constexpr int W[2] = {{1, 2}};\ntemplate <int N>\n__global__ void kernel(int* x) {{ {body} }}\n"
    assert ('identifier "W" is undefined in device code' in refusal(source, "")) == refused


@pytest.mark.parametrize("kernel", ["(int* x) { auto twice = [](int i) { return 2 * i; };", "(int* x, F twice) {"])
def test_a_kernels_own_lambda_may_have_the_name_of_a_function(kernel):
    template = "template <typename F>\n" if "F twice" in kernel else ""
    host = "int twice(int x) { return 2 * x; }\n"
    assert refusal(f"{host}{template}__global__ void kernel{kernel} *x = twice(2); }}\n", "") == ""


_POWER = """template <typename F> struct Power { F by; __device__ F operator()(F x) const { return pow(x, by); } };
template <int N, typename F>
__global__ void power(const float* in, float* out, F f) { for (int i = 0; i < N; ++i) out[i] = f(in[i]); }
__global__ void copy(float* x) { x[0] = x[1]; }
"""


@pytest.mark.parametrize(
    ("launched", "found"),
    [
        (["power<4, Power<double>>"], ["power", "copy"]),
        (["other<4>"], ["copy"]),
        (["power<4, run()::<lambda(float)>>"], ["copy"]),
    ],
)
def test_the_facts_of_a_template_are_those_of_the_launched_instances(monkeypatch, launched, found):
    """An instance of another source, or of a type without a name, does not keep the rest from being compiled."""
    monkeypatch.setattr(cuda_compiled, "_sources", [(_POWER, ())])
    monkeypatch.setattr(cuda_compiled, "launched_instances", lambda: launched)
    facts = {kernel_name(fact["kernel"]): fact for fact in cuda_compiled.facts()}
    assert sorted(facts) == sorted(found)
    if "power" in facts:
        assert facts["power"]["double_cycles"] > 0.3 * facts["power"]["cycles"]
        assert facts["power"]["registers"] > facts["copy"]["registers"]
